/** A way to a server that a test breaks. */

import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

export interface Way {
  readonly url: string;
  readonly proxy: TcpProxy;
}

export async function wayTo(baseUrl: string): Promise<Way> {
  const { hostname, port } = new URL(baseUrl);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  return { url: `http://127.0.0.1:${proxy.port}`, proxy };
}

/** Ways to a server that a test breaks, or answers on its own. */

import { afterEach } from 'vitest';
import type { World } from '#test/http/resource-api/world.ts';
import { type HttpFront, type HttpFrontOptions, startHttpFront } from '#test/support/http-front.ts';
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

export interface Ways {
  way(): Promise<Way>;
  front(options?: Partial<HttpFrontOptions>): Promise<HttpFront>;
}

/** To the world's server; each ends with its test. */
export function useWays(world: Pick<World, 'target'>): Ways {
  const closing: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(closing.splice(0).map((each) => each.stop()));
  });
  return {
    async way() {
      const opened = await wayTo(world.target.baseUrl);
      closing.push(opened.proxy);
      return opened;
    },
    async front(options) {
      const opened = await startHttpFront({ target: () => world.target.baseUrl, ...options });
      closing.push(opened);
      return opened;
    },
  };
}

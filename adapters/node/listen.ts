/** Listeners of a Node process: where they are bound, and how others reach them. */

import type { Server } from 'node:http';

export interface ListenOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

const LOOPBACK_OF_WILDCARD: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * Resolves, once it listens, with its URL: without a slash at the end; of a wildcard host, the loopback address.
 * @throws the system's error when the address cannot be had.
 */
export async function listen(server: Server, { host, port }: ListenOptions): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  const name = LOOPBACK_OF_WILDCARD[host] ?? host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${address.port}`;
}

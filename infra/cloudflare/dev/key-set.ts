/** The public keys of development at a URL, as those of an issuer are: workers know no other way to keys. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JSONWebKeySet } from 'jose';

export interface KeySetServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** On the loopback interface. */
export async function serveKeySet(keys: JSONWebKeySet): Promise<KeySetServer> {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'application/jwk-set+json').end(JSON.stringify(keys));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async stop(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

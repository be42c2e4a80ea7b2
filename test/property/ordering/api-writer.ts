/** Writes over HTTP, at one server or another: each request is one change, and is one that a server may kick publishers for. */

import { type Client, clientOf } from '#test/http/client.ts';
import type { Target } from '#test/http/target.ts';
import type { Random } from '#test/support/random.ts';
import type { Ledger } from '#test/property/ordering/witness.ts';

export interface ApiWriterOptions {
  readonly servers: readonly Target[];
  readonly tenants: readonly string[];
  readonly random: Random;
  readonly ledger: Ledger;
}

/** Objects per tenant that these writers share. */
const NAMES = 8;

/** Writes until told to stop. */
export async function runApiWriter(options: ApiWriterOptions, signal: AbortSignal): Promise<void> {
  const { servers, tenants, random, ledger } = options;
  const clients = await Promise.all(servers.map((server) => clientOf(server, { roles: ['editor'], tenants: '*' })));
  while (!signal.aborted) {
    const widgets = `/apis/example.dev/v1/namespaces/${random.pick(tenants)}/widgets`;
    const transaction = ledger.begin();
    const version = await write(random.pick(clients), widgets, `api-${random.int(0, NAMES - 1)}`, random);
    if (version !== undefined) ledger.acknowledgeVersion(transaction, version);
  }
}

/** The version that the request made; undefined when it may have made none. */
async function write(client: Client, widgets: string, name: string, random: Random): Promise<string | undefined> {
  const body = {
    metadata: { name, labels: { colour: random.pick(['red', 'blue']) } },
    spec: { size: random.int(0, 1000) },
  };
  const path = `${widgets}/${name}`;
  const [method, at, sent] = random.pick([
    ['POST', widgets, body],
    ['PATCH', path, body],
    ['PATCH', path, body],
    ['DELETE', path, undefined],
  ] as const);
  // A server that is frozen, or has lost its connections, may have done it all the same.
  const answer = await client.send(method, at, sent).catch(() => undefined);
  if (!answer || method === 'DELETE' || answer.status >= 300) {
    if (answer && answer.status >= 400 && ![404, 409, 422, 503, 504].includes(answer.status)) {
      throw new Error(`${method} ${at} was answered with ${answer.status} ${answer.text.slice(0, 300)}`);
    }
    return undefined;
  }
  return answer.body.metadata.resourceVersion;
}

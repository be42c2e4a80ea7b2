/** Takes the place of the module that opens pools, in runs with a pooler: what `pooled-connection.ts` sends there knows so. */

// By its path: the name leads here.
import { connect as connectDirectly, type ConnectOptions, type Sql } from '../../adapters/postgres/client.ts';
import { isPooled } from '#test/support/pooled-connection.ts';

export * from '../../adapters/postgres/client.ts';

export function connect(databaseUrl: string, options: ConnectOptions): Sql {
  return connectDirectly(databaseUrl, isPooled(databaseUrl, options) ? { ...options, pooler: 'any' } : options);
}

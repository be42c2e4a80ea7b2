/**
 * The connections of a process. Each pool connects when it is first used: a process that does not publish has no connection for it.
 */

import type { ConnectOptions, Sql } from '#adapters/postgres/client.ts';

/** With what is waited for a connection and for the answer, a request is told within 10 s. */
const STATEMENT_TIMEOUT_MS = 5_000;
/** A batch takes 20 ms; with this one a publisher that lost the server without being told is at work again. */
const PUBLISH_TIMEOUT_MS = 15_000;
const BLOCKS_TIMEOUT_MS = 2_000;

type PoolName = 'api' | 'watch' | 'groups' | 'publish' | 'reconcile' | 'retention' | 'ops' | 'blocks';
export type Pools = Readonly<Record<PoolName, Sql>>;

/** Pools of their own: a herd of resuming watchers must not take the connections of writes, nor of the publisher. */
export function openPools(open: (options: ConnectOptions) => Sql): Pools {
  const pool = (name: PoolName, maxConnections: number, statementTimeoutMs?: number): Sql =>
    open({
      applicationName: `plumbline ${name}`,
      maxConnections,
      // What serves callers sees the tenants that it names for each statement, and nothing without.
      role: name === 'api' || name === 'watch' ? 'plumbline_server' : 'plumbline_worker',
      ...(statementTimeoutMs !== undefined && { statementTimeoutMs }),
    });
  return {
    api: pool('api', 10, STATEMENT_TIMEOUT_MS),
    watch: pool('watch', 6, STATEMENT_TIMEOUT_MS),
    // Leases are renewed whatever watchers wait for.
    groups: pool('groups', 4, STATEMENT_TIMEOUT_MS),
    publish: pool('publish', 4, PUBLISH_TIMEOUT_MS),
    reconcile: pool('reconcile', 6, PUBLISH_TIMEOUT_MS),
    // Dropping a partition waits for its readers.
    retention: pool('retention', 1),
    ops: pool('ops', 1, STATEMENT_TIMEOUT_MS),
    // Nothing else may hold up the news of a block.
    blocks: pool('blocks', 1, BLOCKS_TIMEOUT_MS),
  };
}

/** Nothing runs any more; but the driver waits for connections that were lost under a statement. */
export async function endPools(pools: Pools): Promise<void> {
  await Promise.all(Object.values(pools).map((sql) => sql.end({ timeout: 1 })));
}

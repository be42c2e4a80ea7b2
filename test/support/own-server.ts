/** A server of the test's own, at one address: it is killed and started again, and its history and keys are taken away. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import type { Target } from '#test/http/target.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { expireEvents } from '#test/support/old-events.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';

export interface OwnServer extends Target {
  readonly sql: Sql;
  /** kill -9, then what is to happen while it is away, then a new process at the same address. */
  restart(meanwhile?: () => PromiseLike<unknown>): Promise<void>;
  /** Restarts it with another key for cursors, and without those that it had. */
  retireCursorKeys(): Promise<void>;
  /** As if the tenant's first events had been published four days ago, and are kept for one. */
  removeHistory(tenant: string, lastSeq: number): Promise<void>;
  stop(): Promise<void>;
}

/** @param env beside what every test's instance gets. */
export async function startOwnServer(env: Readonly<Record<string, string>> = {}): Promise<OwnServer> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-own-server-'));
  const sql = connect(database.url, { applicationName: 'test' });
  let instance: LocalInstance = await startLocalInstance({ databaseUrl: database.url, dataDir, env });
  const { baseUrl } = instance;

  return {
    baseUrl,
    audience: 'public',
    token: (grant) => instance.token(grant),
    sql,
    restart,
    async retireCursorKeys() {
      await restart(
        () => sql`with old as (delete from plumbline.cursor_key returning id)
          insert into plumbline.cursor_key (id, key)
          select max(id) + 1, sha256(convert_to(gen_random_uuid()::text, 'UTF8')) from old`,
      );
    },
    removeHistory: (tenant, lastSeq) => expireEvents(sql, tenant, lastSeq),
    async stop() {
      await instance.stop();
      await sql.end();
      await database.drop();
      await rm(dataDir, { recursive: true });
    },
  };

  async function restart(meanwhile?: () => PromiseLike<unknown>): Promise<void> {
    instance.process.kill('SIGKILL');
    await instance.process.exit;
    await meanwhile?.();
    const { port } = new URL(baseUrl);
    instance = await startLocalInstance({ databaseUrl: database.url, dataDir, env: { ...env, PORT: port } });
  }
}

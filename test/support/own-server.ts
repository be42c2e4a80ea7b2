/** A server of the test's own, at one address: it is killed and started again, and its history and keys are taken away. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import type { Target } from '#test/http/target.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
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

const DAY_MS = 86_400_000;

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
    async removeHistory(tenant, lastSeq) {
      const [day, next] = [4, 3].map((days) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10));
      await sql.unsafe(`create table plumbline.event_log_${day?.replaceAll('-', '')} partition of plumbline.event_log
        for values from ('${day} 00:00:00+00') to ('${next} 00:00:00+00')`);
      await sql`update plumbline.event_log e set published_at = ${`${day} 12:00:00+00`}::timestamptz
        from plumbline.stream s where e.stream = s.id and s.tenant = ${tenant} and e.seq <= ${lastSeq}`;
      const [row] = await sql`select plumbline.expire_event_log(clock_timestamp() - interval '1 day') as dropped`;
      if (row?.['dropped'] !== 1) throw new Error(`retention dropped ${JSON.stringify(row)}`);
    },
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

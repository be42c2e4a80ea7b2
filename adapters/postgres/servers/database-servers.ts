/**
 * The servers on which managed databases lie, over PostgreSQL 15 and later. The login of each needs CREATEDB and
 * CREATEROLE, and no superuser; with `force`, pg_signal_backend. A superuser can also repair a role that was made one
 * or a member of another, see that a password was changed by hand and set it back, and adopt databases of others; without
 * one, such a membership is an error that names it, and a changed password stays unseen until the next rotation.
 *
 * Sessions are short-lived and bear the name `plumbline <uid> <fencing token>`, so the server's log is an audit trail.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { insideDatabase } from '#adapters/postgres/servers/inside.ts';
import { serverDatabases } from '#adapters/postgres/servers/databases.ts';
import { serverRoles } from '#adapters/postgres/servers/roles.ts';
import {
  openWorkSession,
  type SessionLimits,
  type WorkSession,
  type WorkSessionOptions,
} from '#adapters/postgres/servers/work-session.ts';
import {
  UnknownServer,
  type DatabaseServer,
  type DatabaseServers,
  type MarkedObject,
} from '#core/ports/database-servers.ts';

const DEFAULT_PORT = 5432;

// The outer session has to outlive the inner ones, for it has the lock that successors look at first. Each statement
// inside is preceded by one outside; so the inner statement and the inner silence together must be shorter than the outer
// silence. Making a database copies 8 MB and waits for the disk.
const OUTER: SessionLimits = { silenceMs: 25_000, statementTimeoutMs: 40_000 };
const INNER: SessionLimits = { silenceMs: 5_000, statementTimeoutMs: 15_000 };

export interface DatabaseServersOptions {
  /** After which the server ends the session of a process that has fallen silent. @default 25,000 */
  readonly silenceMs?: number;
}

/** @param urls by the servers' names; each leads to a maintenance database, such as `postgres`. */
export function postgresDatabaseServers(
  urls: ReadonlyMap<string, string>,
  { silenceMs = OUTER.silenceMs }: DatabaseServersOptions = {},
): DatabaseServers {
  return {
    names: [...urls.keys()],
    open(server, work) {
      const url = urls.get(server);
      if (url === undefined) {
        const known = urls.size === 0 ? 'there is none' : `there are: ${[...urls.keys()].join(', ')}`;
        throw new UnknownServer(`no database server "${server}" is configured; ${known}`);
      }
      return openServer({ server, url, work, limits: { ...OUTER, silenceMs } });
    },
  };
}

function openServer(options: WorkSessionOptions): DatabaseServer {
  const { server, url } = options;
  const session = openWorkSession(options);
  const inner = new Map<string, WorkSession>();
  const { hostname, port } = new URL(url);
  return {
    host: hostname,
    port: port === '' ? DEFAULT_PORT : Number(port),
    databases: serverDatabases(session, server),
    roles: serverRoles(session, server),
    inside(database) {
      return insideDatabase(enter(database), server, database);
    },
    async listMarked(prefix) {
      return session.run(async (sql) => [
        ...(await sql<MarkedObject[]>`
          select class, name, comment from (
            select 'database' as class, datname::text as name, shobj_description(oid, 'pg_database') as comment from pg_database
            union all
            select 'role', rolname::text, shobj_description(oid, 'pg_authid') from pg_roles
          ) objects where starts_with(comment, ${prefix}) order by class, name`),
      ]);
    },
    async close() {
      await Promise.all(Array.from(inner.values(), (each) => each.close()));
      await session.close();
    },
  };

  function enter(database: string): WorkSession {
    const opened =
      inner.get(database) ??
      keptBy(session, (version) => openWorkSession({ ...options, url: urlOf(url, database), limits: INNER, version }));
    inner.set(database, opened);
    return opened;
  }
}

/** A session within a database, whose every statement is preceded by one of the outer session. */
function keptBy(outer: WorkSession, open: (version: number) => WorkSession): WorkSession {
  let inner: WorkSession | undefined;
  return {
    async run(statements) {
      const version = await outer.run(readVersion);
      inner ??= open(version);
      return inner.run(statements);
    },
    close: async () => inner?.close(),
  };
}

async function readVersion(sql: Sql): Promise<number> {
  const [row] = await sql<{ version: number }[]>`select current_setting('server_version_num')::int as version`;
  return row?.version ?? 0;
}

function urlOf(url: string, database: string): string {
  const inside = new URL(url);
  inside.pathname = `/${encodeURIComponent(database)}`;
  return inside.href;
}

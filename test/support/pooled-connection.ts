/**
 * Takes the place of the module that opens connections, in runs with a pooler: see `pooler-of-run.ts`. Connections to the
 * server of the run go through it as a deployment's do: those of our roles with the login of servers, others, such as a
 * test's own, with the login that they have. LISTEN has a connection beside them.
 */

// By its path: the name leads here.
import {
  type ConnectionOptions,
  openConnection as openDirectly,
  type Sql,
} from '../../adapters/postgres/connection.ts';
import { poolerOfRun } from '#test/support/pooler-of-run.ts';

export type { ConnectionOptions, Sql } from '../../adapters/postgres/connection.ts';

export function openConnection(databaseUrl: string, options: ConnectionOptions, onClose: () => void): Sql {
  const pooledUrl = pooledUrlOf(databaseUrl, options);
  if (pooledUrl === undefined) return openDirectly(databaseUrl, options, onClose);
  const connection = openDirectly(pooledUrl, { ...options, pooler: 'any' }, onClose);
  const end = connection.end.bind(connection);
  let listener: Sql | undefined;
  return Object.assign(connection, {
    listen(...args: Parameters<Sql['listen']>) {
      listener ??= openDirectly(databaseUrl, options, () => undefined);
      return listener.listen(...args);
    },
    async end(...args: Parameters<Sql['end']>): Promise<void> {
      await Promise.all([end(...args), listener?.end(...args)]);
    },
  });
}

/** Whether such a connection goes through the pooler. */
export function isPooled(databaseUrl: string, options: ConnectionOptions): boolean {
  return pooledUrlOf(databaseUrl, options) !== undefined;
}

/** What has the address of the database itself also in a deployment: the locks of sleeps, and databases of others. */
function needsSession({ applicationName, settings }: ConnectionOptions): boolean {
  return applicationName.endsWith(' sleep') || applicationName.endsWith(' address check') || settings !== undefined;
}

/** Undefined for what needs a session, for another server, and for logins that the pooler does not know. */
function pooledUrlOf(databaseUrl: string, options: ConnectionOptions): string | undefined {
  const { role } = options;
  const run = poolerOfRun();
  const url = new URL(databaseUrl);
  if (!run || url.host !== run.server || needsSession(options)) return undefined;
  if (role !== undefined && role !== 'plumbline_migrator') {
    url.host = run.pooler;
    url.username = run.login.name;
    url.password = run.login.password;
  } else if (url.username !== run.superuser) {
    return undefined;
  } else {
    url.host = run.wide;
  }
  return url.href;
}

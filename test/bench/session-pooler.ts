/**
 * PgBouncer with sessions that it keeps and lends for as long as a client stays: as near to Hyperdrive as one machine
 * has, for clients whose statements are prepared and which come for one request.
 */

import { runPgBouncer } from '#test/support/pgbouncer.ts';

export interface SessionPooler {
  /** The same server through it, for any login of it. */
  through(databaseUrl: string): string;
  stop(): Promise<void>;
}

const SESSIONS = 20;

/** @param serverUrl with a login that may read passwords */
export async function startSessionPooler(serverUrl: string): Promise<SessionPooler> {
  const { username, password } = new URL(serverUrl);
  const login = { name: decodeURIComponent(username), password: decodeURIComponent(password) };
  const settings = {
    auth_user: login.name,
    // What statements leave behind; to discard all would make each session cold again, as would its end.
    server_reset_query: 'deallocate all',
    server_idle_timeout: '600',
    log_connections: '0',
    log_disconnections: '0',
  };
  const { port, stop } = await runPgBouncer(serverUrl, [login], { mode: 'session', sessions: SESSIONS, settings });
  return { through: (databaseUrl) => Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${port}` }).href, stop };
}

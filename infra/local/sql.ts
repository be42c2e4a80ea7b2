/**
 * `npm run -s sql -- "select 1"`: runs SQL on the database of the running instance, where no psql is installed. The
 * database is DATABASE_URL's, or the one that DATA_DIR/run.json names; `--database NAME` takes another on the same server.
 */

import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { maskDatabaseUrl } from '#infra/_shared/settings/database-variables.ts';
import { findDatabaseUrl } from '#infra/_shared/database/find-database.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';
import { formatTable } from '#infra/_shared/command-line/table.ts';

const CONNECT_TIMEOUT_SECONDS = 5;
// postgres.js waits without end when the server went away under a query.
const CLOSE_TIMEOUT_SECONDS = 1;

/** Of one statement, in postgres.js's raw form; its types do not know that there may be no columns. */
interface Result extends Iterable<readonly (Buffer | null)[]> {
  readonly command: string;
  readonly count: number | null;
  readonly columns?: readonly { readonly name: string }[];
}

await runCommand(async function runSql() {
  const { statement, database } = readArguments();
  const url = onDatabase(await findDatabaseUrl(readConfig(process.env, { isTerminal: false })), database);
  const sql = postgres(url, {
    max: 1,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    fetch_types: false,
    onnotice: printNotice,
  });
  try {
    // Raw: as PostgreSQL prints the values, not as JavaScript would.
    const result: Result | readonly Result[] = await sql.unsafe(statement).raw();
    for (const each of 'command' in result ? [result] : result) process.stdout.write(show(each));
  } catch (error) {
    throw explain(error, url);
  } finally {
    await sql.end({ timeout: CLOSE_TIMEOUT_SECONDS });
  }
});

function readArguments(): { readonly statement: string; readonly database: string | undefined } {
  const usage = new StartError('usage: npm run -s sql -- [--database NAME] "<one statement, quoted>"');
  try {
    const { values, positionals } = parseArgs({ options: { database: { type: 'string' } }, allowPositionals: true });
    const [statement, ...rest] = positionals;
    if (!statement?.trim() || rest.length > 0 || values.database === '') throw usage;
    return { statement, database: values.database };
  } catch {
    throw usage;
  }
}

function onDatabase(databaseUrl: string, name: string | undefined): string {
  if (name === undefined) return databaseUrl;
  const url = new URL(databaseUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

/** The rows, if it has columns, and what PostgreSQL says was done; a select says it by its rows. */
function show(result: Result): string {
  const tag = result.count === null ? result.command : `${result.command} ${result.count}`;
  if (!result.columns) return `${tag}\n`;
  const header = result.columns.map((column) => column.name);
  const rows = Array.from(result, (row) => row.map((value) => value?.toString('utf8') ?? null));
  const table = formatTable(header, rows);
  return result.command === 'SELECT' ? table : `${table}${tag}\n`;
}

function printNotice(notice: postgres.Notice): void {
  process.stderr.write(`${notice['severity'] ?? 'NOTICE'}: ${notice['message'] ?? ''}\n`);
}

/** Errors of PostgreSQL and of the connection are the user's to know; others are faults. */
function explain(error: unknown, url: string): unknown {
  if (error instanceof postgres.PostgresError) {
    const more = [error.detail && `detail: ${error.detail}`, error.hint && `hint: ${error.hint}`];
    const lines = [`${error.severity} ${error.code}: ${error.message}`, ...more].filter(Boolean);
    return new StartError(lines.join('\n'), { cause: error });
  }
  if (!(error instanceof Error && 'code' in error)) return error;
  return new StartError(`${maskDatabaseUrl(url)} cannot be reached: ${messageOf(error)}; does the instance run?`, {
    cause: error,
  });
}

/**
 * `npm run -s sql -- "select 1"`: runs SQL on the database of the running instance, where no psql is installed. The
 * database is DATABASE_URL's, or the one that DATA_DIR/run.json names.
 */

import postgres from 'postgres';
import { runCommand } from '#infra/local/command.ts';
import { type Config, maskDatabaseUrl, readConfig } from '#infra/local/config.ts';
import { readRunFile } from '#infra/local/run-file.ts';
import { StartError, messageOf } from '#infra/local/start-error.ts';
import { formatTable } from '#infra/local/table.ts';

const CONNECT_TIMEOUT_SECONDS = 5;

await runCommand(async function runSql() {
  const [statement, ...rest] = process.argv.slice(2);
  if (!statement?.trim() || rest.length > 0) throw new StartError('usage: npm run -s sql -- "<one statement, quoted>"');
  const url = await findDatabase(readConfig(process.env, { isTerminal: false }));
  const sql = postgres(url, { max: 1, connect_timeout: CONNECT_TIMEOUT_SECONDS, onnotice: printNotice });
  try {
    // Raw: as PostgreSQL prints the values, not as JavaScript would.
    const result = await sql.unsafe(statement).raw();
    const header = result.columns.map((column) => column.name);
    const rows = result.map((row) => row.map((value: Buffer | null) => value?.toString('utf8') ?? null));
    process.stdout.write(header.length > 0 ? formatTable(header, rows) : `${commandTag(result)}\n`);
  } catch (error) {
    throw new StartError(explain(error, url), { cause: error });
  } finally {
    await sql.end();
  }
});

async function findDatabase(config: Config): Promise<string> {
  const url = config.databaseUrl ?? (await readRunFile(config.dataDir))?.databaseUrl;
  if (url === undefined) {
    throw new StartError(`no instance runs in ${config.dataDir}: run npm start there first, or set DATABASE_URL`);
  }
  return url;
}

function commandTag(result: { readonly command: string; readonly count: number | null }): string {
  return result.count === null ? result.command : `${result.command} ${result.count}`;
}

function printNotice(notice: postgres.Notice): void {
  process.stderr.write(`${notice['severity'] ?? 'NOTICE'}: ${notice['message'] ?? ''}\n`);
}

function explain(error: unknown, url: string): string {
  if (!(error instanceof postgres.PostgresError)) {
    return `${maskDatabaseUrl(url)} cannot be reached: ${messageOf(error)}; does the instance run?`;
  }
  const more = [error.detail && `detail: ${error.detail}`, error.hint && `hint: ${error.hint}`];
  return [`${error.severity} ${error.code}: ${error.message}`, ...more].filter(Boolean).join('\n');
}

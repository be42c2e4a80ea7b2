/**
 * Whether a database is one that this program can serve from, for hosts that carry no SQL files: they know the newest
 * one by its name.
 */

import postgres from 'postgres';
import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { assertKindsAreKnown, KindMismatch, type RegisteredKind } from '#adapters/postgres/kinds.ts';
import { assertServerRole } from '#adapters/postgres/pooled-login.ts';
import { StatusError } from '#core/status-error.ts';

/** The last of `sql/`. */
export const NEWEST_MIGRATION = '0024_report_status.sql';
const UNDEFINED_TABLE = '42P01';

/**
 * @param sql of the login that serves.
 * @throws {StatusError} ServiceUnavailable, with what is wrong and what to do; of the login only its cause says that.
 */
export async function assertServable(sql: Sql, kinds: readonly RegisteredKind[]): Promise<void> {
  const [role, newest, known] = await Promise.allSettled([
    assertServerRole(sql),
    newestMigration(sql),
    assertKindsAreKnown(sql, kinds),
  ]);
  // Who has no rights, or another schema, cannot know the rest.
  if (role.status === 'rejected') throw unusable(role.reason);
  if (newest.status === 'rejected') throw unusable(newest.reason);
  assertNewest(newest.value);
  if (known.status === 'fulfilled') return;
  if (known.reason instanceof KindMismatch) {
    throw new StatusError('ServiceUnavailable', known.reason.message, { cause: known.reason });
  }
  throw unusable(known.reason);
}

function assertNewest(newest: string | undefined): void {
  if (newest === NEWEST_MIGRATION) return;
  if (newest === undefined) throw notServable('has no schema: npm run set-up makes it');
  if (newest < NEWEST_MIGRATION) {
    throw notServable(
      `has the schema of an older version, up to ${newest}: npm run set-up of this version comes first`,
    );
  }
  throw notServable(`has the schema of a newer version, up to ${newest}: deploy that version`);
}

/** Undefined where there is none. */
async function newestMigration(sql: Sql): Promise<string | undefined> {
  try {
    const [row] = await sql<{ name: string }[]>`select name from plumbline.migration order by version desc limit 1`;
    return row?.name;
  } catch (error) {
    if (error instanceof postgres.PostgresError && error.code === UNDEFINED_TABLE) return undefined;
    throw error;
  }
}

function unusable(error: unknown): unknown {
  const told = toCallerError(error, 'the login');
  if (told instanceof StatusError) return told;
  return new StatusError('ServiceUnavailable', 'the login of this server is not set up; its log says what is missing', {
    cause: error,
  });
}

function notServable(what: string): StatusError {
  return new StatusError('ServiceUnavailable', `the database ${what}`);
}

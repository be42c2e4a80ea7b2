/** Whether the schema of a database is this program's, for programs that do not make it so. */

import { assertSchemaIsCurrent } from '#adapters/postgres/migrate.ts';
import { explainDatabaseError } from '#infra/_shared/database/database-error.ts';

/** @throws {StartError} when it is another, with what to do, and when the database cannot be used. */
export async function assertOwnSchema(databaseUrl: string): Promise<void> {
  await assertSchemaIsCurrent(databaseUrl).catch((error: unknown) => {
    throw explainDatabaseError(error, databaseUrl);
  });
}

/** Refusals of the database, as tests compare them. */

import postgres from 'postgres';

export interface SqlRefusal {
  readonly code: string;
  /** The field of the object that is to blame. */
  readonly field: string | undefined;
  readonly message: string;
}

/** What a statement is refused with. @throws when it is not, or fails in another way. */
export async function refusalOf(statement: Promise<unknown>): Promise<SqlRefusal> {
  try {
    await statement;
  } catch (error) {
    if (!(error instanceof postgres.PostgresError)) throw error;
    return { code: error.code, field: error.column_name, message: error.message };
  }
  throw new Error('the statement was not refused');
}

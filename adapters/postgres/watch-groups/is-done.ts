import { type Fragment, guarded, type Sql } from '#adapters/postgres/client.ts';

/** Calls a function that answers whether it did something: false when there was nothing to do it to. */
export async function isDone(sql: Sql, subject: string, call: () => Fragment): Promise<boolean> {
  const [row] = await guarded(subject, () => sql<{ isDone: boolean }[]>`select ${call()} as "isDone"`);
  return row?.isDone ?? false;
}

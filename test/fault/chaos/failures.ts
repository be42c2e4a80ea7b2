/** Why passes failed, as the objects' events tell. */

import type { Sql } from '#adapters/postgres/client.ts';
import { generalised } from '#test/fault/chaos/drivers.ts';

/** Failed passes by controller and kind of message. */
export async function readFailures(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ controller: string; reason: string; message: string; count: number }[]>`
    select controller, reason, message, count from plumbline.object_event where type = 'Warning'`;
  const failures = new Map<string, number>();
  for (const { controller, reason, message, count } of rows) {
    const kind = generalised(`${controller} ${reason}: ${message}`);
    failures.set(kind, (failures.get(kind) ?? 0) + count);
  }
  return failures;
}

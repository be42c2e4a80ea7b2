/** Somebody who changes things on the server by hand, and knows nothing of Plumbline. */

import { pause } from '#loop/pause.ts';
import { SUBJECTS } from '#test/fault/chaos/users.ts';
import { type ChaosWorld, MANAGER } from '#test/fault/chaos/world.ts';
import type { Random } from '#test/support/random.ts';

export interface Drift {
  readonly report: DriftReport;
  /** Until the signal aborts. */
  make(signal: AbortSignal): Promise<void>;
  /** Takes back rights that were given where no binding is, which is nobody else's to do. */
  tidy(): Promise<void>;
}

export interface DriftReport {
  done: number;
  /** What the server did not let happen at that moment. */
  failed: number;
}

const LONGEST_PAUSE_MS = 1_200;

export function createDrift(world: ChaosWorld, random: Random): Drift {
  const report: DriftReport = { done: 0, failed: 0 };
  return { report, make, tidy };

  async function make(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(random.int(0, LONGEST_PAUSE_MS), signal);
      // What is there may be gone, or in the middle of being made.
      const isDone = await (random.chance(0.5) ? changePart() : changeServer()).catch(() => false);
      report[isDone ? 'done' : 'failed'] += 1;
    }
  }

  async function tidy(): Promise<void> {
    const bound = await world.sql<{ database: string; role: string }[]>`
      select tenant || '_' || (spec ->> 'database') as database, tenant || '_' || (spec ->> 'subject') as role
      from plumbline.resource where kind = 'RoleBinding'`;
    for (const database of await managedDatabases()) {
      const tenant = database.split('_')[0] ?? '';
      const roles = await world.byHand(
        `select rolname from pg_roles where rolname ~ '^${tenant}_(${SUBJECTS.join('|')})$'`,
      );
      for (const { rolname } of roles) {
        if (bound.some((each) => each.database === database && each.role === rolname)) continue;
        // What was given by hand, and no more: what a pass left behind must be found.
        for (const right of [`all on database "${database}"`, 'truncate on table items']) {
          await world.byHand(`revoke ${right} from "${String(rolname)}"`, database).catch(() => undefined);
        }
      }
    }
  }

  async function managedDatabases(): Promise<readonly string[]> {
    const rows = await world.byHand(`select datname from pg_database where datname like '%\\_db-%' order by 1`);
    return rows.map(({ datname }) => String(datname));
  }

  async function changePart(): Promise<boolean> {
    const changed = random.chance(0.5)
      ? await world.trail`update part set value = 'by hand' where (entry, part) = (
          select entry, part from part order by md5(entry || part || ${String(random.next())}) limit 1) returning entry`
      : await world.trail`delete from part where (entry, part) = (
          select entry, part from part order by md5(entry || part || ${String(random.next())}) limit 1) returning entry`;
    return changed.length > 0;
  }

  async function changeServer(): Promise<boolean> {
    const managed = await managedDatabases();
    if (managed.length === 0) return false;
    const database = random.pick(managed);
    const owner = `${database}_owner`;
    const subject = `"${database.split('_')[0]}_${random.pick(SUBJECTS)}"`;
    const [where, text] = random.pick<readonly [string, string]>([
      ['postgres', `alter database "${database}" connection limit ${random.int(60, 90)}`],
      ['postgres', `grant connect, temporary on database "${database}" to public`],
      ['postgres', `alter database "${database}" owner to ${MANAGER}`],
      ['postgres', `revoke all on database "${database}" from "${owner}"`],
      ['postgres', `alter role "${owner}" nologin`],
      ['postgres', `alter role ${subject} nologin`],
      ['postgres', `revoke connect on database "${database}" from ${subject}`],
      ['postgres', `drop database "${database}" with (force)`],
      [database, `drop owned by ${subject}; drop role ${subject}`],
      [database, `grant all on database "${database}" to ${subject}`],
      [database, `set role "${owner}"; create table if not exists items (id serial, name text)`],
      [database, `revoke all on table items from ${subject}`],
      [database, `grant truncate on table items to ${subject}`],
      [database, `alter default privileges for role "${owner}" revoke all on tables from ${subject}`],
    ]);
    await world.byHand(text, where);
    return true;
  }
}

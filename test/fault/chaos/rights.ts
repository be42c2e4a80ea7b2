/** What roles can really do in managed databases, beside what the live bindings say. */

import type { LiveObject } from '#test/fault/chaos/object-state.ts';
import { SUBJECTS } from '#test/fault/chaos/users.ts';
import type { ChaosWorld } from '#test/fault/chaos/world.ts';

const ABILITIES: Readonly<Record<string, readonly string[]>> = {
  reader: ['connect', 'select'],
  writer: ['connect', 'select', 'insert'],
  owner: ['connect', 'select', 'insert', 'truncate'],
};

/** In every database: the union of the bindings, and no more. And its owner logs in with the password of the status. */
export async function rightsProblems(world: ChaosWorld, objects: readonly LiveObject[]): Promise<readonly string[]> {
  const problems: string[] = [];
  const bindings = objects.filter(({ kind }) => kind === 'RoleBinding');
  for (const { tenant, name, status } of objects.filter(({ kind }) => kind === 'ManagedDatabase')) {
    const database = `${tenant}_${name}`;
    const password = status.password ?? '';
    await world.logIn(database, `${database}_owner`, password).catch((error: unknown) => {
      problems.push(`the owner of ${database} cannot log in: ${String(error)}`);
    });
    const found = await abilitiesIn(world, database, tenant);
    for (const subject of SUBJECTS) {
      const roles = bindings
        .filter((each) => each.tenant === tenant && each.spec['subject'] === subject && each.spec['database'] === name)
        .map(({ spec }) => spec['role'] ?? '');
      const wanted = [...new Set(roles.flatMap((role) => ABILITIES[role] ?? []))].toSorted();
      const able = found.get(`${tenant}_${subject}`) ?? [];
      if (wanted.join() !== able.join()) {
        problems.push(
          `${subject} in ${database} can ${able.join() || 'nothing'}; bindings give ${wanted.join() || 'nothing'}`,
        );
      }
    }
  }
  return problems;
}

/** By role, what it can do with the database and with a table that its owner has just made. */
async function abilitiesIn(
  world: ChaosWorld,
  database: string,
  tenant: string,
): Promise<Map<string, readonly string[]>> {
  const rows = await world.byHand(
    `set role "${database}_owner"; create table if not exists probe (id int); reset role;
    select rolname, array_to_string(array_remove(array[
      case when has_database_privilege(oid, current_database(), 'connect') then 'connect' end,
      case when has_table_privilege(oid, 'probe', 'insert') then 'insert' end,
      case when has_table_privilege(oid, 'probe', 'select') then 'select' end,
      case when has_table_privilege(oid, 'probe', 'truncate') then 'truncate' end], null), ',') as can
    from pg_roles where rolname ~ '^${tenant}_(${SUBJECTS.join('|')})$'`,
    database,
  );
  // Of several statements in one text, the last has rows.
  const last = (Array.isArray(rows.at(-1)) ? rows.at(-1) : rows) as typeof rows;
  return new Map(last.map(({ rolname, can }) => [String(rolname), String(can).split(',').filter(Boolean)]));
}

/** Users who make, change and delete objects at random, by raw SQL, under names that come again and again. */

import type { Sql } from '#adapters/postgres/client.ts';
import { pause } from '#loop/pause.ts';
import { TENANTS } from '#test/fault/chaos/world.ts';
import type { Random } from '#test/support/random.ts';

export interface UserReport {
  created: number;
  changed: number;
  deleted: number;
}

/** A place for an object; there are many incarnations of it. */
interface Slot {
  readonly tenant: string;
  readonly group: string;
  readonly kind: 'ManagedDatabase' | 'RoleBinding' | 'Entry';
  readonly name: string;
}

// For each of five tenants: 200 in all.
const DATABASES = 6;
const BINDINGS = 12;
const ENTRIES = 22;
export const SUBJECTS: readonly string[] = ['ann', 'bob', 'cid', 'dee'];
const LONGEST_PAUSE_MS = 160;
/** Of what is done to an object that is there. Making a database takes a server long. */
const DELETIONS: Readonly<Record<Slot['kind'], number>> = { ManagedDatabase: 0.15, RoleBinding: 0.25, Entry: 0.3 };

const SLOTS: readonly Slot[] = TENANTS.flatMap((tenant) => [
  ...names('db', DATABASES).map((name): Slot => ({ tenant, group: 'plumbline.dev', kind: 'ManagedDatabase', name })),
  ...names('grant', BINDINGS).map((name): Slot => ({ tenant, group: 'plumbline.dev', kind: 'RoleBinding', name })),
  ...names('entry', ENTRIES).map((name): Slot => ({ tenant, group: 'chaos.dev', kind: 'Entry', name })),
]);

export interface Users {
  readonly report: UserReport;
  /** Makes one of each, in any order, then goes on at random until the signal aborts. */
  act(signal: AbortSignal): Promise<void>;
  /** Takes away what can never be made true: bindings whose database is gone or going. */
  tidy(): Promise<void>;
}

export function createUsers(sql: Sql, random: Random): Users {
  const report: UserReport = { created: 0, changed: 0, deleted: 0 };
  return { report, act, tidy };

  async function act(signal: AbortSignal): Promise<void> {
    const order = SLOTS.map((slot) => ({ slot, at: random.next() })).toSorted((a, b) => a.at - b.at);
    for (const { slot } of order) {
      if (signal.aborted) return;
      await create(slot);
      await pause(random.int(0, LONGEST_PAUSE_MS / 4), signal);
    }
    while (!signal.aborted) {
      const slot = random.pick(SLOTS);
      if (await create(slot)) continue;
      await (random.chance(DELETIONS[slot.kind]) ? remove(slot) : change(slot));
      await pause(random.int(0, LONGEST_PAUSE_MS), signal);
    }
  }

  /** @returns whether there was none of this name. */
  async function create({ tenant, group, kind, name }: Slot): Promise<boolean> {
    const made = await sql`
      insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values (${tenant}, ${group}, ${kind}, ${name}, ${JSON.stringify(newSpec(kind))}::text::jsonb)
      on conflict (api_group, kind, tenant, name) do nothing returning uid`;
    report.created += made.length;
    return made.length > 0;
  }

  async function change({ tenant, kind, name }: Slot): Promise<void> {
    const changed = await sql`
      update plumbline.resource set spec = spec || ${JSON.stringify(newPatch(kind))}::text::jsonb
      where tenant = ${tenant} and kind = ${kind} and name = ${name} and deletion_timestamp is null returning uid`;
    report.changed += changed.length;
  }

  async function remove({ tenant, kind, name }: Slot): Promise<void> {
    const deleted = await sql`
      update plumbline.resource set deletion_timestamp = now()
      where tenant = ${tenant} and kind = ${kind} and name = ${name} and deletion_timestamp is null returning uid`;
    report.deleted += deleted.length;
  }

  async function tidy(): Promise<void> {
    await sql`
      update plumbline.resource b set deletion_timestamp = now()
      where b.kind = 'RoleBinding' and b.deletion_timestamp is null and not exists (
        select from plumbline.resource d where d.kind = 'ManagedDatabase' and d.tenant = b.tenant
          and d.name = b.spec ->> 'database' and d.deletion_timestamp is null)`;
  }

  function newSpec(kind: Slot['kind']): object {
    if (kind !== 'ManagedDatabase') return { ...newBinding(kind), ...newPatch(kind) };
    return { server: 'local', adoptionPolicy: 'Never', deletionPolicy: 'Delete', force: true, ...newPatch(kind) };
  }

  function newBinding(kind: Slot['kind']): object {
    return kind === 'RoleBinding'
      ? { subject: random.pick(SUBJECTS), database: `db-${random.int(0, DATABASES - 1)}` }
      : {};
  }

  function newPatch(kind: Slot['kind']): object {
    switch (kind) {
      case 'ManagedDatabase':
        return random.chance(0.2)
          ? { rotationToken: `rotation-${random.int(1, 1_000)}` }
          : { connectionLimit: random.int(5, 50) };
      case 'RoleBinding':
        return {
          role: random.pick(['reader', 'writer', 'owner']),
          ...(random.chance(0.2) && { subject: random.pick(SUBJECTS) }),
        };
      case 'Entry':
        return {
          size: String(random.int(1, 1_000)),
          colour: random.pick(['red', 'green', 'blue']),
        };
    }
  }
}

function names(prefix: string, length: number): readonly string[] {
  return Array.from({ length }, (_, index) => `${prefix}-${index}`);
}

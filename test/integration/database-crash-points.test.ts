import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Kind } from '#core/kind.ts';
import { type CrashPoints, startCrashPoints } from '#test/support/crash-points.ts';
import { type DatabaseWorld, openDatabaseWorld } from '#test/support/database-world.ts';
import type { PassDone } from '#test/support/one-pass.ts';
import type { TenantPasses } from '#test/support/tenant-passes.ts';

const RETRY_MS = 5;
const MOST_PASSES = 500;
const TIMEOUT_MS = 240_000;

let crashes: CrashPoints;
let world: DatabaseWorld;

beforeAll(async () => {
  crashes = await startCrashPoints();
  world = await openDatabaseWorld({ proxyPort: crashes.proxyPort });
});

afterAll(async () => {
  crashes.arm(Infinity);
  await world.close();
  await crashes.stop();
});

/**
 * Runs a life again and again. In the n-th run the n-th answer of the server is cut off, and its process is dead, in each
 * stretch of passes, until none of them takes so many answers.
 * @returns how many processes died.
 */
async function atEveryPoint(
  life: (run: Run) => Promise<void>,
  tenantOf: () => TenantPasses | Promise<TenantPasses> = () => world.newTenant(),
): Promise<number> {
  let deaths = 0;
  for (let point = 1; ; point++) {
    const tenant = await tenantOf();
    const deathsBefore = deaths;
    const once = async (kind: Kind, name: string): Promise<PassDone> => {
      const hadCut = crashes.hasCut;
      return tenant.pass(kind, name, { isDead: () => crashes.hasCut && !hadCut });
    };
    const stretch = async <Result>(passes: () => Promise<Result>): Promise<Result> => {
      crashes.arm(point);
      const result = await passes();
      if (crashes.hasCut) deaths += 1;
      crashes.arm(Infinity);
      return result;
    };
    const until = async (kind: Kind, name: string, result: string): Promise<void> => {
      for (let passes = 0; passes < MOST_PASSES; passes++) {
        const pass = await once(kind, name);
        if (pass.result === result) return;
        // The server has to notice that a session is gone.
        if (pass.error !== undefined) await pause(RETRY_MS);
      }
      const { error } = await tenant.pass(kind, name);
      expect.fail(`answer ${point}: ${kind.kind} "${name}" did not become ${result}: ${error}`);
    };
    await life({
      tenant,
      point,
      once: (kind, name) => stretch(() => once(kind, name)),
      until: (kind, name, result) => stretch(() => until(kind, name, result)),
    });
    if (deaths === deathsBefore) return deaths;
  }
}

interface Run {
  readonly tenant: TenantPasses;
  readonly point: number;
  /** One pass. It is a stretch, in which the process dies at one answer, if there are so many. */
  once(kind: Kind, name: string): Promise<PassDone>;
  /** Passes until one comes to this. They are a stretch. */
  until(kind: Kind, name: string, result: string): Promise<void>;
}

async function namesOf({ tenant, installation }: TenantPasses): Promise<readonly string[]> {
  const rows = await world.sql(`
    select datname as name from pg_database where datname like '${tenant}\\_%' or datname like 'plumbline\\_%'
      and shobj_description(oid, 'pg_database') like 'plumbline:${installation}/%'
    union all select rolname from pg_roles where rolname like '${tenant}\\_%' order by 1`);
  return rows.map(({ name }) => String(name));
}

/** What is there of a ManagedDatabase "orders", as far as its controller sets it. */
async function look({ tenant }: TenantPasses): Promise<Look | undefined> {
  const [row] = await world.sql(`
    select shobj_description(d.oid, 'pg_database') as "databaseMarker", shobj_description(r.oid, 'pg_authid') as "roleMarker",
      datconnlimit as "limit", has_database_privilege('public', d.oid, 'connect') as "isOpen", rolcanlogin as "canLogIn"
    from pg_database d join pg_roles r on r.oid = datdba where datname = '${tenant}_orders'`);
  return row as Look | undefined;
}

interface Look {
  readonly databaseMarker: string;
  readonly roleMarker: string;
  readonly limit: number;
  /** To everybody. */
  readonly isOpen: boolean;
  readonly canLogIn: boolean;
}

async function canLogIn(tenant: TenantPasses): Promise<void> {
  const session = await world.enter(tenant, 'orders');
  try {
    await session`select 'a'::public.citext`;
  } finally {
    await session.end();
  }
}

describe('a process that dies at any answer of the server', () => {
  test(
    'leaves a ManagedDatabase that is made, mended, rotated and removed in the end',
    async () => {
      const deaths = await atEveryPoint(async ({ tenant, until }) => {
        await tenant.put(world.database, 'orders', { extensions: ['citext'], connectionLimit: 9 });
        await until(world.database, 'orders', 'done');
        const name = `${tenant.tenant}_orders`;
        expect(await namesOf(tenant)).toEqual([name, `${name}_owner`]);
        const made = await look(tenant);
        expect(made).toMatchObject({ limit: 9, isOpen: false, canLogIn: true });
        expect(made?.databaseMarker).toContain(`/ManagedDatabase/`);
        expect(made?.roleMarker).toBe(made?.databaseMarker);
        await canLogIn(tenant);
        await world.sql(`grant connect on database "${name}" to public; alter role "${name}_owner" nologin`);
        await tenant.put(world.database, 'orders', { extensions: ['citext'], rotationToken: 'b' });
        await until(world.database, 'orders', 'done');
        const status = await tenant.status(world.database, 'orders');
        expect(status).toMatchObject({ rotationToken: 'b' });
        expect(await look(tenant)).toEqual({ ...made, limit: -1 });
        expect(await tenant.pass(world.database, 'orders')).toMatchObject({ result: 'done', events: [] });
        await canLogIn(tenant);
        await tenant.remove(world.database, 'orders');
        await until(world.database, 'orders', 'finalized');
        expect(await namesOf(tenant)).toEqual([]);
      });
      expect(deaths).toBeGreaterThan(30);
    },
    TIMEOUT_MS,
  );

  test(
    'leaves nothing of a ManagedDatabase that is not wanted any more before it was made',
    async () => {
      const deaths = await atEveryPoint(async ({ tenant, once, until }) => {
        await tenant.put(world.database, 'orders', {});
        expect(await once(world.database, 'orders')).toMatchObject({ result: 'not-ready', nextMs: 0 });
        await once(world.database, 'orders');
        await tenant.remove(world.database, 'orders');
        await until(world.database, 'orders', 'finalized');
        expect(await namesOf(tenant)).toEqual([]);
      });
      expect(deaths).toBeGreaterThan(15);
    },
    TIMEOUT_MS,
  );

  test(
    'leaves rights that are given, changed and taken in the end',
    async () => {
      const tenant = await world.newTenant();
      const name = `${tenant.tenant}_orders`;
      await tenant.put(world.database, 'orders', {});
      await tenant.settle(world.database, 'orders');
      await world.sql(`set role "${name}_owner"; create table things (id serial)`, name);
      const rightsOf = async (subject: string): Promise<unknown> => {
        const role = `${tenant.tenant}_${subject}`;
        const [row] = await world.sql(
          `select has_table_privilege('${role}', 'things', 'select') as read,
            has_table_privilege('${role}', 'things', 'insert') as write`,
          name,
        );
        return { ...row };
      };
      const live = async ({ point, until }: Run): Promise<void> => {
        const [a, b, ann, bob] = ['a', 'b', 'ann', 'bob'].map((text) => `${text}${point}`) as [
          string,
          string,
          string,
          string,
        ];
        await tenant.put(world.binding, a, { database: 'orders', subject: ann, role: 'reader' });
        await until(world.binding, a, 'done');
        expect(await rightsOf(ann)).toEqual({ read: true, write: false });
        await tenant.put(world.binding, b, { database: 'orders', subject: ann, role: 'writer' });
        await until(world.binding, b, 'done');
        await tenant.remove(world.binding, a);
        await until(world.binding, a, 'finalized');
        expect(await rightsOf(ann)).toEqual({ read: true, write: true });
        await tenant.put(world.binding, b, { database: 'orders', subject: bob, role: 'owner' });
        await until(world.binding, b, 'done');
        expect(await namesOf(tenant)).toEqual([name, `${tenant.tenant}_${bob}`, `${name}_owner`].toSorted());
        await tenant.remove(world.binding, b);
        await until(world.binding, b, 'finalized');
        expect(await namesOf(tenant)).toEqual([name, `${name}_owner`]);
      };
      const deaths = await atEveryPoint(live, () => tenant);
      expect(deaths).toBeGreaterThan(30);
    },
    TIMEOUT_MS,
  );
});

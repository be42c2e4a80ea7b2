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
 * Runs a life once for each answer of the server that it takes, with that answer cut off and its process dead.
 * @returns how many points there are.
 */
async function atEveryPoint(
  life: (run: Run) => Promise<void>,
  tenantOf: () => TenantPasses | Promise<TenantPasses> = () => world.newTenant(),
): Promise<number> {
  for (let point = 1; ; point++) {
    const tenant = await tenantOf();
    crashes.arm(point);
    const once = async (kind: Kind, name: string): Promise<PassDone> => {
      const hadCut = crashes.hasCut;
      return tenant.pass(kind, name, { isDead: () => crashes.hasCut && !hadCut });
    };
    await life({
      tenant,
      point,
      once,
      async until(kind, name, result) {
        for (let passes = 0; passes < MOST_PASSES; passes++) {
          const pass = await once(kind, name);
          if (pass.result === result) return;
          // The server has to notice that a session is gone.
          if (pass.error !== undefined) await pause(RETRY_MS);
        }
        expect.fail(
          `answer ${point}: ${kind.kind} "${name}" did not become ${result}: ${(await tenant.pass(kind, name)).error}`,
        );
      },
    });
    const { hasCut } = crashes;
    crashes.arm(Infinity);
    if (!hasCut) return point - 1;
  }
}

interface Run {
  readonly tenant: TenantPasses;
  readonly point: number;
  /** One pass, which may be the one that dies. */
  once(kind: Kind, name: string): Promise<PassDone>;
  /** Passes until one comes to this. */
  until(kind: Kind, name: string, result: string): Promise<void>;
}

async function namesOf({ tenant, installation }: TenantPasses): Promise<readonly string[]> {
  const rows = await world.sql(`
    select datname as name from pg_database where datname like '${tenant}\\_%' or datname like 'plumbline\\_%'
      and shobj_description(oid, 'pg_database') like 'plumbline:${installation}/%'
    union all select rolname from pg_roles where rolname like '${tenant}\\_%' order by 1`);
  return rows.map(({ name }) => String(name));
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
    'leaves a ManagedDatabase that is made, rotated and removed in the end',
    async () => {
      const points = await atEveryPoint(async ({ tenant, until }) => {
        await tenant.put(world.database, 'orders', { extensions: ['citext'], connectionLimit: 9 });
        await until(world.database, 'orders', 'done');
        const name = `${tenant.tenant}_orders`;
        expect(await namesOf(tenant)).toEqual([name, `${name}_owner`]);
        await canLogIn(tenant);
        await tenant.put(world.database, 'orders', { extensions: ['citext'], rotationToken: 'b' });
        await until(world.database, 'orders', 'done');
        const status = await tenant.status(world.database, 'orders');
        expect(status).toMatchObject({ rotationToken: 'b' });
        await canLogIn(tenant);
        await tenant.remove(world.database, 'orders');
        await until(world.database, 'orders', 'finalized');
        expect(await namesOf(tenant)).toEqual([]);
      });
      expect(points).toBeGreaterThan(30);
    },
    TIMEOUT_MS,
  );

  test(
    'leaves nothing of a ManagedDatabase that is not wanted any more before it was made',
    async () => {
      const points = await atEveryPoint(async ({ tenant, once, until }) => {
        await tenant.put(world.database, 'orders', {});
        expect(await once(world.database, 'orders')).toMatchObject({ result: 'not-ready', nextMs: 0 });
        await once(world.database, 'orders');
        await tenant.remove(world.database, 'orders');
        await until(world.database, 'orders', 'finalized');
        expect(await namesOf(tenant)).toEqual([]);
      });
      expect(points).toBeGreaterThan(15);
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
      const points = await atEveryPoint(live, () => tenant);
      expect(points).toBeGreaterThan(30);
    },
    TIMEOUT_MS,
  );
});

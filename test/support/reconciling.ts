/** Drivers of passes for tests, as many as are wanted, on one database with kinds whose controllers do what a test says. */

import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { postgresPassObjects } from '#adapters/postgres/pass-objects.ts';
import { postgresWorkQueue } from '#adapters/postgres/work-queue.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import { postgresWriterSleep } from '#adapters/postgres/writer-sleep.ts';
import { defineKind, type Kind } from '#core/kind.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import type { PassContext } from '#core/reconcile/context.ts';
import type { ControllerDefinition } from '#core/reconcile/controller.ts';
import type { PassResult, ReconcileDeps } from '#functions/reconcile/deps.ts';
import { runResidentReconciler } from '#functions/reconcile/resident-reconciler.ts';
import { runOnce } from '#functions/reconcile/run-once.ts';
import { kitObjects, type KitObjects } from '#infra/testkit/objects.ts';
import { kitWork, type Work } from '#infra/testkit/work.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

// What a test puts into spec and status is its own.
// oxlint-disable-next-line typescript/no-explicit-any
export type ProbeSpec = Record<string, any>;
export type Context = PassContext<ProbeSpec, ProbeSpec>;
export type ProbeController = Partial<ControllerDefinition<ProbeSpec, ProbeSpec>> & { readonly name: string };

/** A namespaced kind of example.dev with any spec; a controller without functions does nothing. */
export function probeKind(kind: string, ...controllers: readonly ProbeController[]): Kind<ProbeSpec, ProbeSpec> {
  return defineKind<ProbeSpec, ProbeSpec>({
    group: 'example.dev',
    version: 'v1',
    kind,
    plural: `${kind.toLowerCase()}s`,
    scope: 'Namespaced',
    spec: v.looseObject({ size: v.optional(v.number(), 1) }),
    status: v.looseObject({}),
    controllers: controllers.map((controller) => ({ async reconcile() {}, ...controller })),
  });
}

export interface DriverOptions {
  /** @default those of the database */
  readonly kinds?: readonly Kind[];
  /** @default 10,000 */
  readonly leaseMs?: number;
  /** @default 4 */
  readonly concurrency?: number;
  readonly databaseUrl?: string;
}

export interface TestDriver extends ReconcileDeps {
  readonly results: { readonly controller: string; readonly result: PassResult }[];
  readonly errors: unknown[];
  readonly sql: Sql;
  /** All that is due. @returns how many passes ran. */
  run(): Promise<number>;
  /** Stays until it is stopped, or the test's database is closed. */
  stay(): { stop(): Promise<void> };
}

export interface Item {
  readonly class: number;
  readonly dueInMs: number;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly generation: bigint;
  readonly isTerminal: boolean;
  readonly touches: bigint;
}

export interface Reconciling extends KitObjects, Work {
  readonly url: string;
  /** The superuser's pool. */
  readonly sql: Sql;
  driver(options?: DriverOptions): TestDriver;
  item(name: string, controller?: string): Promise<Item | undefined>;
  // oxlint-disable-next-line typescript/no-explicit-any -- as it comes from the API
  status(kind: string, name: string): Promise<any>;
  /** By type, as `status reason`. */
  conditions(kind: string, name: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/** @param given a migrated database that is dropped in the end. @default one of the run's server */
export async function prepareReconciling(
  kinds: readonly Kind[],
  tenants: readonly [string, ...string[]] = ['acme'],
  given?: TestDatabase,
): Promise<Reconciling> {
  const database = given ?? (await createTestDatabase());
  await registerKinds(database.url, [...SHIPPED_KINDS, ...kinds]);
  const sql = connect(database.url, { applicationName: 'test', maxConnections: 10 });
  await createTenants(sql, tenants);
  const objects = kitObjects(sql, kinds, tenants[0]);
  const opened: { close(): Promise<void> }[] = [];
  const self: Reconciling = {
    ...objects,
    ...kitWork(sql, tenants),
    url: database.url,
    sql,
    driver(options = {}) {
      const driver = openDriver({ databaseUrl: database.url, kinds, ...options });
      opened.push(driver);
      return driver;
    },
    async item(name, controller) {
      const [item] = await sql<Item[]>`
        select w.class, (extract(epoch from w.due_at - clock_timestamp()) * 1000)::float8 as "dueInMs", w.attempts,
          w.last_error as "lastError", w.generation, w.is_terminal as "isTerminal", w.touches
        from plumbline.work_item w join plumbline.resource r on r.uid = w.uid
        where r.name = ${name} and (w.controller = ${controller ?? null}::text or ${controller === undefined})`;
      return item;
    },
    async status(kind, name) {
      return (await objects.get(kind, name))?.status ?? {};
    },
    async conditions(kind, name) {
      const { conditions = [] } = await self.status(kind, name);
      return Object.fromEntries(
        conditions.map((each: Record<string, string>) => [each['type'], `${each['status']} ${each['reason']}`]),
      );
    },
    async close() {
      for (const each of opened) await each.close();
      await sql.end({ timeout: 5 });
      await database.drop();
    },
  };
  return self;
}

function openDriver({
  databaseUrl = '',
  kinds = [],
  leaseMs = 10_000,
  concurrency = 4,
}: DriverOptions): TestDriver & { close(): Promise<void> } {
  const role = 'plumbline_worker';
  const sql = connect(databaseUrl, { applicationName: 'test driver', maxConnections: 4, role });
  const results: TestDriver['results'] = [];
  const errors: unknown[] = [];
  const lifetime = new AbortController();
  const staying: Promise<void>[] = [];
  const deps: ReconcileDeps = {
    queue: postgresWorkQueue(sql, { holder: randomUUID(), leaseMs }),
    objects: postgresPassObjects(sql),
    upkeep: postgresWorkUpkeep(sql),
    kinds,
    logger: silentLogger,
    leaseMs,
    concurrency,
    reports: {
      onPass: (controller, result) => void results.push({ controller, result }),
      onHung: () => undefined,
      onError: (error) => void errors.push(error),
    },
  };
  return {
    ...deps,
    results,
    errors,
    sql,
    run: () => runOnce(deps, { budgetMs: 30_000 }),
    stay() {
      const stop = new AbortController();
      const signal = AbortSignal.any([stop.signal, lifetime.signal]);
      const sleep = postgresWriterSleep({ role: 'reconciler', databaseUrl, sql, signal });
      const running = runResidentReconciler({ ...deps, sleep }, signal);
      staying.push(running);
      return {
        async stop() {
          stop.abort();
          await running;
        },
      };
    },
    async close() {
      lifetime.abort();
      await Promise.all(staying);
      await sql.end({ timeout: 1 });
    },
  };
}

/** A promise and the way to fulfil it: where a function of a test waits for the test. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** Runs passes as the driver does, one at a time, in processes that may die. Time does not pass: what waits is made due. */

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresPassObjects } from '#adapters/postgres/pass-objects.ts';
import { postgresWorkQueue } from '#adapters/postgres/work-queue.ts';
import { postgresWorkUpkeep } from '#adapters/postgres/work-upkeep.ts';
import type { Kind } from '#core/kind.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { ClaimedPass, PassObjects } from '#core/ports/work-queue.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { createMapper } from '#functions/reconcile/map-changes.ts';
import { runPass } from '#functions/reconcile/pass.ts';
import { PassSignal } from '#functions/reconcile/pass-signal.ts';
import type { Calls } from '#infra/testkit/calls.ts';
import { type KitProcess, never, startProcess } from '#infra/testkit/kit-process.ts';
import { TestKitError } from '#infra/testkit/test-kit-error.ts';
import type { Work } from '#infra/testkit/work.ts';

export interface KitDriver {
  /** Passes that were begun so far. */
  readonly passes: number;
  /** Runs what is due until nothing is, in a fresh process each time that one dies. */
  runDue(): Promise<void>;
}

export interface KitDriverOptions {
  /** As servers connect. */
  readonly sql: Sql;
  readonly kinds: readonly Kind[];
  readonly calls: Calls;
  readonly work: Work;
  readonly logger: Logger;
}

/** Far more than any test takes: leases end when their process dies, and at no other time. */
const LEASE_MS = 3_600_000;
const ALIVE_EVERY_MS = 10_000;
const MOST_PASSES = 1_000;

export function createKitDriver({ sql, kinds, calls, work, logger }: KitDriverOptions): KitDriver {
  const definitions = new Map(
    kinds.flatMap((kind) => kind.controllers.map((controller) => [controller.id, { kind, controller }])),
  );
  let passes = 0;
  let aliveAtMs = -Infinity;
  let installation: string | undefined;
  let worker = startProcess();
  let deps = depsOf(worker);

  return {
    get passes() {
      return passes;
    },
    async runDue() {
      installation ??= await postgresWorkUpkeep(sql).installation();
      if (performance.now() - aliveAtMs > ALIVE_EVERY_MS) {
        await postgresWorkUpkeep(sql).reportAlive([...definitions.keys()]);
        aliveAtMs = performance.now();
      }
      for (let count = 1; await runNext(); count++) {
        if (count > MOST_PASSES) throw new TestKitError(`${MOST_PASSES} passes were not enough: ${await dueNow()}`);
      }
    },
  };

  /** @returns whether there was something to do. */
  async function runNext(): Promise<boolean> {
    const alive = worker;
    let hasWork = true;
    await Promise.race([alive.run(workOnce).then((result) => (hasWork = result)), alive.died]);
    if (alive.isDead) await replace(alive);
    return hasWork;
  }

  async function workOnce(): Promise<boolean> {
    const errors: unknown[] = [];
    await createMapper({ ...deps, onError: (error) => errors.push(error) }).look();
    if (errors.length > 0) throw errors[0];
    const [pass] = await deps.queue.claim([...definitions.keys()], 1);
    if (!pass) return false;
    await run(pass);
    return true;
  }

  async function run(pass: ClaimedPass): Promise<void> {
    const definition = definitions.get(pass.controller);
    if (!definition) throw new TypeError(`${pass.controller} is not a controller of the test kit's kinds`);
    passes += 1;
    const passSignal = new PassSignal(LEASE_MS);
    worker.current = passSignal;
    const ended = await runPass({ deps, ...definition, pass, passSignal, installation: installation ?? '' });
    worker.current = undefined;
    if (ended.hung) {
      throw new TestKitError(
        `${pass.controller} went on for two seconds after the signal of its pass of "${pass.row.name}" had aborted; give ctx.signal to every call, and end when it aborts`,
      );
    }
    await calls.arriveLate();
  }

  async function replace(dead: KitProcess): Promise<void> {
    await dead.arrived();
    await work.expireLeases();
    worker = startProcess();
    deps = depsOf(worker);
  }

  function depsOf(owner: KitProcess): ReconcileDeps {
    const refuse = (): Promise<never> => Promise.reject(new Error('this process is dead'));
    return {
      queue: gated(postgresWorkQueue(sql, { holder: crypto.randomUUID(), leaseMs: LEASE_MS }), owner, refuse),
      objects: withCalls(gated(postgresPassObjects(sql), owner, never), calls),
      upkeep: postgresWorkUpkeep(sql),
      kinds,
      logger,
      leaseMs: LEASE_MS,
      concurrency: 1,
    };
  }

  async function dueNow(): Promise<string> {
    const rows = await sql<{ item: string }[]>`
      select w.controller || ' of "' || r.name || '"' || coalesce(' (' || w.last_error || ')', '') as item
      from plumbline.work_item w join plumbline.resource r on r.uid = w.uid where w.due_at <= clock_timestamp() limit 5`;
    return `still due: ${rows.map(({ item }) => item).join('; ')}; a pass that asks for the next one at once never ends`;
  }
}

/** The store as a process reaches it: what was sent arrives, and a dead one sends nothing. */
function gated<Port extends object>(port: Port, owner: KitProcess, whenDead: () => Promise<never>): Port {
  return new Proxy(port, {
    get(target, key): unknown {
      const method: unknown = Reflect.get(target, key, target);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown =>
        owner.isDead ? whenDead() : owner.sent(Reflect.apply(method, target, args) as Promise<unknown>);
    },
  });
}

/** Writes of children can be cut off as everything else can. */
function withCalls(objects: PassObjects, calls: Calls): PassObjects {
  return {
    get: (...args) => objects.get(...args),
    list: (...args) => objects.list(...args),
    applyChild: (...args) => calls.make('children.apply', () => objects.applyChild(...args)),
    removeChild: (...args) => calls.make('children.remove', () => objects.removeChild(...args)),
  };
}

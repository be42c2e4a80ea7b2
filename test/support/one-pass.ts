/** One pass of a chosen object on the real queue, whether it is due or not, and with a process that may die in it. */

import type { Sql, Fragment } from '#adapters/postgres/client.ts';
import type { Kind } from '#core/kind.ts';
import type { ClaimedPass, PassEnd, PassObjects, WorkQueue } from '#core/ports/work-queue.ts';
import type { Controller } from '#core/reconcile/controller.ts';
import type { PassResult } from '#functions/reconcile/deps.ts';
import { runPass } from '#functions/reconcile/pass.ts';
import { PassSignal } from '#functions/reconcile/pass-signal.ts';
import type { Reconciling, TestDriver } from '#test/support/reconciling.ts';

export interface PassDone {
  /** `fenced` too when its process died. */
  readonly result: PassResult;
  /** Of a dead process too, which told nobody. */
  readonly error: string | undefined;
  /** When it is due next, in milliseconds; 0: now. */
  readonly nextMs: number;
  readonly events: readonly string[];
}

export interface OnePassOptions {
  /** Asked at the end of the pass: whether its process died before it told the store. Its lease is over then. */
  readonly isDead?: () => boolean;
  /** Called before the pass lists objects; what it throws is what the list comes to. */
  readonly beforeList?: () => Promise<void>;
  /** Called when the pass has done its work, before the store is told. */
  readonly beforeEnd?: () => Promise<void>;
}

/** @throws {Error} when another pass holds the object. */
export type OnePass = (kind: Kind, uid: string, options?: OnePassOptions) => Promise<PassDone>;

/** Longer than any pass takes: leases end when they are given back, or their process dies. */
export const LEASE_MS = 120_000;

/** @param driver has leases of `LEASE_MS`. */
export function createOnePass(store: Reconciling, driver: TestDriver, installation: string): OnePass {
  const { sql } = store;
  let claims: Promise<unknown> = Promise.resolve();

  return async (kind, uid, { isDead, beforeList, beforeEnd } = {}) => {
    const controller = controllerOf(kind);
    const pass = await claim(controller, uid);
    let told: PassEnd | undefined;
    const queue: WorkQueue = {
      ...driver.queue,
      async finish(claimed, end) {
        told = end;
        await beforeEnd?.();
        if (!isDead?.()) return driver.queue.finish(claimed, end);
        await store.expireLeases();
        return 'fenced';
      },
    };
    const objects: PassObjects = {
      ...driver.objects,
      async list(...args) {
        await beforeList?.();
        return driver.objects.list(...args);
      },
    };
    const deps = { ...driver, queue, objects };
    const passSignal = new PassSignal(LEASE_MS);
    const ended = await runPass({ deps, kind, controller, pass, passSignal, installation });
    const nextMs = ended.outcome === 'again' ? 0 : ended.nextMs;
    const events = told?.events.map(({ reason, message }) => `${reason}: ${message}`) ?? [];
    return { result: ended.result, error: told?.error, nextMs, events };
  };

  /** One after the other, so that each gets the object that it is for. */
  async function claim(controller: Controller, uid: string): Promise<ClaimedPass> {
    const claimed = claims.then(() => claimNow(controller, uid));
    claims = claimed.catch(() => undefined);
    return claimed;
  }

  async function claimNow({ id }: Controller, uid: string): Promise<ClaimedPass> {
    await sql`update plumbline.work_item set ${parked(sql)}
      where controller = ${id} and uid <> ${uid} and (class < 3 or due_at <= clock_timestamp())`;
    // Before all that becomes due in between: a pass that ends meanwhile may ask for the next one.
    await sql`update plumbline.work_item set class = 0, due_at = '-infinity' where controller = ${id} and uid = ${uid}`;
    const [pass] = await driver.queue.claim([id], 1);
    if (pass?.row.uid !== uid) {
      throw new Error(`a pass of ${id} for ${uid} was claimed, and ${pass?.row.uid ?? 'nothing'} was given`);
    }
    return pass;
  }
}

/** Of an item: nobody claims it for now. */
export function parked(sql: Sql): Fragment {
  return sql`class = 3, due_at = clock_timestamp() + interval '1 hour'`;
}

/** @throws {TypeError} unless it is the only one. */
export function controllerOf({ kind, controllers }: Kind): Controller {
  const [controller] = controllers;
  if (!controller || controllers.length > 1) throw new TypeError(`${kind} has ${controllers.length} controllers`);
  return controller;
}

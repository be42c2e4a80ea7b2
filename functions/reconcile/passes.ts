/**
 * The passes that run in this process: their leases are renewed together, and a lost one ends its pass. A function that
 * goes on after it was told to end keeps its object, so that no other pass of it begins beside it, but no room.
 */

import type { Kind } from '#core/kind.ts';
import type { ClaimedPass } from '#core/ports/work-queue.ts';
import type { Controller } from '#core/reconcile/controller.ts';
import type { ReconcileDeps } from '#functions/reconcile/deps.ts';
import { runPass, type PassEnded } from '#functions/reconcile/pass.ts';
import { LeaseLost, PassSignal, ProcessStops } from '#functions/reconcile/pass-signal.ts';

interface Running {
  readonly pass: ClaimedPass;
  readonly passSignal: PassSignal;
}

export type Claimed = 'none' | 'some' | 'all';

export interface Passes {
  /** There is room for another pass. */
  readonly hasRoom: boolean;
  /** Passes that have begun and not ended. */
  readonly busy: number;
  /** Controllers of all kinds. */
  readonly controllers: readonly string[];
  /**
   * Claims what is due, as far as there is room, and starts it.
   * @returns `none` when nothing was to be had, or there was no room; `some` when it was less than room; else `all`.
   */
  claim(): Promise<Claimed>;
  /** Resolves when there is more room than now, or at once when no pass runs. */
  ended(): Promise<void>;
  /** Resolves when none is busy any more. */
  settled(): Promise<void>;
  /** Ends all that still run, and those of a claim that is under way: they begin again elsewhere. */
  end(): void;
  /** Stops renewing leases; hung functions lose theirs. */
  close(): void;
}

export interface PassesOptions {
  readonly deps: ReconcileDeps;
  readonly installation: string;
  /** @param nextMs when its item is due next, in milliseconds; 0: now. */
  readonly onEnded: (nextMs: number) => void;
}

const STOPS = 'the process stops';
const MOST_AT_ONCE = 100;
/** Passes whose function has ended, and whose end is on its way to the store, take no room; so many of them, in rooms. */
const MOST_ENDING = 2;

export function createPasses({ deps, installation, onEnded }: PassesOptions): Passes {
  const { queue, leaseMs, reports } = deps;
  const byName = new Map<string, { readonly kind: Kind; readonly controller: Controller }>(
    deps.kinds.flatMap((kind) => kind.controllers.map((controller) => [controller.id, { kind, controller }])),
  );
  const controllers = [...byName.keys()];
  const running = new Map<string, Running>();
  const taking = new Set<Promise<void>>();
  /** Passes whose function is running. */
  let calls = 0;
  let onRoom = (): void => undefined;
  let isEnding = false;
  const renewal = setInterval(() => void renew(), leaseMs / 3);

  return {
    get busy() {
      return taking.size;
    },
    get hasRoom() {
      return roomNow() > 0;
    },
    controllers,
    claim,
    async ended() {
      if (taking.size > 0) await new Promise<void>((resolve) => (onRoom = resolve));
    },
    async settled() {
      while (taking.size > 0) await Promise.all(taking);
    },
    end() {
      isEnding = true;
      for (const { passSignal } of running.values()) passSignal.end(new ProcessStops(STOPS));
    },
    close: () => clearInterval(renewal),
  };

  function roomNow(): number {
    return Math.min(deps.concurrency - calls, deps.concurrency * (1 + MOST_ENDING) - taking.size, MOST_AT_ONCE);
  }

  async function claim(): Promise<Claimed> {
    const room = roomNow();
    if (room <= 0 || controllers.length === 0) return 'none';
    const askedAtMs = performance.now();
    const claimed = await queue.claim(controllers, room);
    for (const pass of claimed) start(pass, askedAtMs);
    if (claimed.length === 0) return 'none';
    return claimed.length < room ? 'some' : 'all';
  }

  function start(pass: ClaimedPass, claimedAtMs: number): void {
    const definition = byName.get(pass.controller);
    if (!definition)
      throw new TypeError(`a pass of ${pass.controller} was claimed, which is not one of this program's`);
    const passSignal = new PassSignal(leaseMs);
    passSignal.extend(claimedAtMs + leaseMs);
    if (isEnding) passSignal.end(new ProcessStops(STOPS));
    const entry: Running = { pass, passSignal };
    // Its lease ran out, or this one could not have been claimed; nobody else would tell it, since only the new one is renewed.
    running.get(pass.row.uid)?.passSignal.end(new LeaseLost('another pass of this object has begun in this process'));
    running.set(pass.row.uid, entry);
    if (pass.wasAbandoned) {
      deps.logger.warn({ controller: pass.controller, uid: pass.row.uid }, 'the pass before this one never ended');
    }
    calls += 1;
    let isCalling = true;
    const onFunctionEnded = (): void => {
      if (isCalling) calls -= 1;
      isCalling = false;
      onRoom();
    };
    const options = { deps, ...definition, pass, passSignal, installation, onFunctionEnded };
    const taken = run(options, entry).finally(() => {
      taking.delete(taken);
      onFunctionEnded();
    });
    taking.add(taken);
  }

  async function run(options: Parameters<typeof runPass>[0], entry: Running): Promise<void> {
    const { uid } = entry.pass.row;
    const startedAtMs = performance.now();
    let ended: PassEnded | undefined;
    try {
      ended = await runPass(options);
      reports?.onPass(entry.pass.controller, ended.result, performance.now() - startedAtMs);
      keepWhileHung(ended, entry);
    } catch (error) {
      // The lease runs out, and the item, which is still due, is claimed again.
      reports?.onError(error);
    }
    if (!ended?.hung) forget(uid, entry);
    onEnded(ended === undefined || ended.outcome === 'again' ? 0 : ended.nextMs);
  }

  /** The next pass of the object may have been claimed here before this one was done with. */
  function forget(uid: string, entry: Running): void {
    if (running.get(uid) === entry) running.delete(uid);
  }

  function keepWhileHung({ hung }: PassEnded, entry: Running): void {
    if (!hung) return;
    const { controller, row } = entry.pass;
    deps.logger.error(
      { controller, uid: row.uid },
      'the reconcile function goes on, though its signal has aborted; its object waits until it ends',
    );
    reports?.onHung(controller, 1);
    void hung.then(async () => {
      forget(row.uid, entry);
      reports?.onHung(controller, -1);
      await queue.release(entry.pass).catch((error: unknown) => reports?.onError(error));
      onEnded(0);
    });
  }

  async function renew(): Promise<void> {
    const entries = [...running.values()];
    if (entries.length === 0) return;
    // While the store does not answer, nobody else tells: a pass may go on for as long as it certainly is held.
    for (const entry of entries) if (!entry.passSignal.isHeld) lose(entry, 'the lease could not be renewed in time');
    const askedAtMs = performance.now();
    try {
      const lost = new Set(await queue.renew(entries.map(({ pass }) => pass)));
      for (const entry of entries) {
        if (!lost.has(entry.pass.row.uid)) entry.passSignal.extend(askedAtMs + leaseMs);
        // One that has ended meanwhile has given its lease back.
        else if (running.get(entry.pass.row.uid) === entry) lose(entry, 'another pass of this object may have begun');
      }
    } catch (error) {
      reports?.onError(error);
    }
  }

  function lose({ pass, passSignal }: Running, why: string): void {
    if (passSignal.signal.aborted) return;
    deps.logger.warn({ controller: pass.controller, uid: pass.row.uid }, `a pass is ended: ${why}`);
    passSignal.end(new LeaseLost(why));
  }
}

/**
 * From changes of watched kinds to the objects that they concern. The changes wait in the store, written in the transaction
 * of the change itself, until what they concern is due there: a crash in between only maps them again. A `map` that throws,
 * hangs or returns nonsense holds up its own changes and nothing else.
 */

import * as v from 'valibot';
import type { Kind } from '#core/kind.ts';
import type { MappedTarget, PassObjects, WatchChange, WorkQueue } from '#core/ports/work-queue.ts';
import type { WatchContext } from '#core/reconcile/context.ts';
import type { Controller, WatchTarget } from '#core/reconcile/controller.ts';
import { inTime } from '#functions/reconcile/in-time.ts';

export interface MapChangesDeps {
  readonly queue: WorkQueue;
  readonly objects: PassObjects;
  readonly kinds: readonly Kind[];
  readonly onError: (error: unknown) => void;
  /** No page is begun once it has aborted: what waits is the next one's. */
  readonly signal?: AbortSignal;
}

export interface Mapper {
  /** Maps what waits, and what comes meanwhile. Never rejects; whoever has something else to do need not wait. */
  look(): Promise<void>;
}

const MOST_AT_ONCE = 200;
const TIMEOUT_MS = 5_000;
const POSTPONE_MS = 10_000;

const targetsSchema: v.GenericSchema<unknown, WatchTarget[]> = v.array(
  v.union([v.strictObject({ name: v.string() }), v.strictObject({ uid: v.string() })]),
);

/** @param onMapped is called when objects may have become due. */
export function createMapper(deps: MapChangesDeps, onMapped: () => void = () => undefined): Mapper {
  const watching = new Map<string, Controller>(
    deps.kinds.flatMap((kind) =>
      kind.controllers.filter(({ watches }) => watches.length > 0).map((controller) => [controller.id, controller]),
    ),
  );
  let running: Promise<void> | undefined;
  let isAsked = false;
  return { look };

  async function look(): Promise<void> {
    if (watching.size === 0) return;
    isAsked = true;
    running ??= run().finally(() => (running = undefined));
    await running;
  }

  async function run(): Promise<void> {
    while (isAsked) {
      isAsked = false;
      try {
        while (deps.signal?.aborted !== true && (await mapSome()));
      } catch (error) {
        deps.onError(error);
      }
    }
  }

  /** @returns whether there may be more. */
  async function mapSome(): Promise<boolean> {
    const changes = await deps.queue.watchChanges([...watching.keys()], MOST_AT_ONCE);
    if (changes.length === 0) return false;
    const mapped = await Promise.all(changes.map(mapOne));
    const done = mapped.filter((each) => each !== undefined);
    const failed = changes.filter((_, index) => mapped[index] === undefined);
    if (failed.length > 0) await deps.queue.postponeWatchChanges(failed, POSTPONE_MS);
    if (done.length > 0) {
      const targets = done.flatMap((each) => each.targets);
      await deps.queue.finishWatchChanges(
        done.map(({ change }) => change),
        targets,
      );
      if (targets.length > 0) onMapped();
    }
    return changes.length === MOST_AT_ONCE;
  }

  async function mapOne(change: WatchChange): Promise<Mapped | undefined> {
    const { object, tenant } = change;
    const group = object.apiVersion.split('/')[0];
    const controller = watching.get(change.controller);
    const watch = controller?.watches.find(({ kind }) => kind.kind === object.kind && kind.group === group);
    // Another version of the code watched this kind.
    if (!controller || !watch) return { change, targets: [] };
    try {
      const ctx: WatchContext = { list: (kind, of) => deps.objects.list(of, kind) };
      const returned = await inTime(async () => watch.map(object, ctx), TIMEOUT_MS);
      const targets = v.parse(targetsSchema, returned);
      return { change, targets: targets.map((target) => ({ controller: controller.id, tenant, target })) };
    } catch (error) {
      const about = `map() of controller ${controller.id} failed for ${object.kind} "${object.metadata.name}"`;
      deps.onError(new Error(`${about}; it is tried again`, { cause: error }));
      return undefined;
    }
  }
}

interface Mapped {
  readonly change: WatchChange;
  readonly targets: readonly MappedTarget[];
}

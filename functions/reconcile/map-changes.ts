/**
 * From changes of watched kinds to the objects that they concern. The changes wait in the store, written in the transaction
 * of the change itself, until what they concern is due there: a crash in between only maps them again.
 */

import type { MappedTarget, PassObjects, WatchChange, WorkQueue } from '#core/ports/work-queue.ts';
import type { Kind } from '#core/kind.ts';
import type { Controller } from '#core/reconcile/controller.ts';

export interface MapChangesDeps {
  readonly queue: WorkQueue;
  readonly objects: PassObjects;
  readonly kinds: readonly Kind[];
  readonly onError: (error: unknown) => void;
}

const MOST_AT_ONCE = 200;

/** Maps what waits; true when there may be more. */
export async function mapChanges({ queue, objects, kinds, onError }: MapChangesDeps): Promise<boolean> {
  const watching = new Map(
    kinds.flatMap((kind) =>
      kind.controllers.filter(({ watches }) => watches.length > 0).map((each) => [each.id, each]),
    ),
  );
  if (watching.size === 0) return false;
  const changes = await queue.watchChanges([...watching.keys()], MOST_AT_ONCE);
  if (changes.length === 0) return false;
  const mapped = await Promise.all(changes.map((change) => mapOne(change, watching.get(change.controller))));
  const done = mapped.filter((each) => each !== undefined);
  if (done.length > 0) {
    await queue.finishWatchChanges(
      done.map(({ change }) => change),
      done.flatMap(({ targets }) => targets),
    );
  }
  // One that cannot be mapped stays, and is tried again later; those behind it are not held up for ever.
  return done.length === changes.length && changes.length === MOST_AT_ONCE;

  async function mapOne(change: WatchChange, controller: Controller | undefined): Promise<Mapped | undefined> {
    const { object, tenant } = change;
    const group = object.apiVersion.split('/')[0];
    const watch = controller?.watches.find(({ kind }) => kind.kind === object.kind && kind.group === group);
    // Another version of the code watched this kind.
    if (!controller || !watch) return { change, targets: [] };
    try {
      const targets = await watch.map(object, { list: (kind, of) => objects.list(of, kind) });
      return { change, targets: targets.map((target) => ({ controller: controller.id, tenant, target })) };
    } catch (error) {
      onError(
        new Error(`map() of controller ${controller.id} failed for ${object.kind} "${object.metadata.name}"`, {
          cause: error,
        }),
      );
      return undefined;
    }
  }
}

interface Mapped {
  readonly change: WatchChange;
  readonly targets: readonly MappedTarget[];
}

/** The objects that an informer knows. What is older than what it knows changes nothing. */

import { createTombstones } from '#infra/client/informer/tombstones.ts';
import { type Change, compareVersions, type PlumblineObject } from '#infra/client/objects.ts';

export interface Handlers<Spec, Status> {
  readonly onAdd?: ((object: PlumblineObject<Spec, Status>) => void) | undefined;
  readonly onUpdate?:
    | ((object: PlumblineObject<Spec, Status>, before: PlumblineObject<Spec, Status>) => void)
    | undefined;
  /** `finalStateUnknown`: its deletion was missed, and this is the last that was seen of it. */
  readonly onDelete?:
    | ((object: PlumblineObject<Spec, Status>, how: { readonly finalStateUnknown: boolean }) => void)
    | undefined;
}

export interface Cache<Spec, Status> {
  readonly objects: ReadonlyMap<string, PlumblineObject<Spec, Status>>;
  /** By name; undefined when there is none. */
  get(tenant: string | undefined, name: string): PlumblineObject<Spec, Status> | undefined;
  apply(change: Change<Spec, Status>): void;
  /**
   * Takes a complete list, page by page. A list is no older than the cache, except by what is on its way through the log;
   * `isTrusted`: it is right whatever the cache knows, since the log is not the one that it was.
   */
  beginList(options: { readonly isTrusted: boolean }): ListIntake<Spec, Status>;
}

export interface ListIntake<Spec, Status> {
  take(objects: readonly PlumblineObject<Spec, Status>[]): void;
  /** All pages were taken: what was on none of them is gone. */
  complete(): void;
}

/** Callers see each change once it is in the cache. */
export function createCache<Spec, Status>(handlers: Handlers<Spec, Status>): Cache<Spec, Status> {
  const objects = new Map<string, PlumblineObject<Spec, Status>>();
  const uids = new Map<string, string>();
  const tombstones = createTombstones();
  return { objects, get, apply, beginList };

  function get(tenant: string | undefined, name: string): PlumblineObject<Spec, Status> | undefined {
    const uid = uids.get(nameKey(tenant, name));
    return uid === undefined ? undefined : objects.get(uid);
  }

  function apply({ type, object, event }: Change<Spec, Status>): void {
    const { uid } = object.metadata;
    if (tombstones.holds(uid, event.resourceversion, type)) return;
    const known = objects.get(uid);
    if (known && compareVersions(event.resourceversion, known.metadata.resourceVersion) <= 0) return;
    if (type !== 'DELETED') set(object);
    else if (known) remove(object, event.resourceversion);
  }

  function beginList({ isTrusted }: { readonly isTrusted: boolean }): ListIntake<Spec, Status> {
    const listed = new Set<string>();
    if (isTrusted) tombstones.forgetAll();
    else tombstones.forgetUnseen();
    return {
      take(page) {
        for (const object of page) {
          const { uid, resourceVersion } = object.metadata;
          listed.add(uid);
          const known = objects.get(uid);
          const order = known ? compareVersions(resourceVersion, known.metadata.resourceVersion) : 1;
          if (isTrusted ? order !== 0 : order > 0 && !tombstones.holds(uid, resourceVersion, 'list')) set(object);
        }
      },
      complete() {
        for (const [uid, object] of objects) if (!listed.has(uid)) remove(object, undefined);
      },
    };
  }

  function set(object: PlumblineObject<Spec, Status>): void {
    const { uid, namespace, name } = object.metadata;
    const before = objects.get(uid);
    objects.set(uid, object);
    uids.set(nameKey(namespace, name), uid);
    if (before) handlers.onUpdate?.(object, before);
    else handlers.onAdd?.(object);
  }

  function remove(object: PlumblineObject<Spec, Status>, version: string | undefined): void {
    const { uid, namespace, name } = object.metadata;
    const key = nameKey(namespace, name);
    objects.delete(uid);
    // Its successor of the same name may be known already.
    if (uids.get(key) === uid) uids.delete(key);
    tombstones.add(uid, version);
    handlers.onDelete?.(object, { finalStateUnknown: version === undefined });
  }
}

function nameKey(tenant: string | undefined, name: string): string {
  return `${tenant ?? ''}/${name}`;
}

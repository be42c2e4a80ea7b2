/**
 * PORT. The store of objects. Every method takes a scope; what lies outside of it does not exist for the call.
 *
 * The store enforces what no writer may bypass (identity, versions, finalizers, the one-way deletion); the API enforces
 * schemas and roles. Errors are `StatusError`: NotFound, AlreadyExists, Conflict, Invalid, ServiceUnavailable.
 */

import type { PropagationPolicy } from '#core/delete-options.ts';
import type { Scope } from '#core/identity.ts';
import type { ObjectQuota } from '#core/ports/tenant-limits.ts';
import type { SelectorRequirement } from '#core/label-selector.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { JsonText, ResourceKey, ResourceRow } from '#core/resource.ts';

/** A new object: what the client chose. The rest is the store's. */
export interface NewResource extends ResourceKey {
  readonly finalizers: readonly string[];
  readonly labels: JsonText;
  readonly annotations: JsonText;
  readonly ownerReferences: JsonText;
  readonly spec: JsonText;
}

/** The parts of an object that the main endpoint writes. */
export interface DesiredState {
  readonly finalizers: readonly string[];
  readonly labels: JsonText;
  readonly annotations: JsonText;
  readonly ownerReferences: JsonText;
  readonly spec: JsonText;
}

/** What must still hold of an object when a write reaches it; otherwise the write is a Conflict. */
export interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** A controller elsewhere that reports. */
export interface Reporter {
  /** `group/name` */
  readonly controller: string;
  /** Of its lease of the object: a decimal from 1 on. Needed once it has given one. */
  readonly fencingToken?: string;
}

export interface ListParams {
  readonly group: string;
  readonly kind: string;
  /** One tenant (`system` for cluster-scoped kinds), or all of the scope. */
  readonly tenant?: string;
  readonly name?: string;
  readonly labels: readonly SelectorRequirement[];
  /** Objects with these names, or in these tenants, are left out. */
  readonly except?: { readonly names: readonly string[]; readonly tenants: readonly string[] };
  readonly limit: number;
  /** Objects after this one. */
  readonly after?: ListPlace;
}

/** A place in the order of lists, (tenant, name). */
export interface ListPlace {
  readonly tenant: string;
  readonly name: string;
}

export interface ListPage {
  readonly rows: readonly ResourceRow[];
  /** More objects may follow: behind `scannedTo` if it is there, else behind the last row. */
  readonly more: boolean;
  /** A selector that few objects meet: the page ends here, and has all up to here, though it could hold more. */
  readonly scannedTo?: ListPlace;
  /**
   * The state that the page shows: exactly the events up to these points, one per stream. Absent when the log stayed
   * behind the rows: then the rows are current, and no watch can take over from them without a gap.
   */
  readonly head?: ReadonlyMap<bigint, LogPoint>;
}

/** The state at the logs' heads, in one snapshot, as it is read. */
export interface Snapshot {
  /** The open stream of each tenant of the scope. */
  readonly streams: ReadonlyMap<string, bigint>;
  readonly head: ReadonlyMap<bigint, LogPoint>;
  /** Pages of objects of all kinds asked for. Read once. */
  readonly pages: AsyncIterable<readonly ResourceRow[]>;
  /** Gives it up, read or not; whoever asked for it closes it. May be called again. Never rejects. */
  close(): Promise<void>;
}

export interface Removal {
  /** As it is, or as it was last. */
  readonly row: ResourceRow;
  readonly gone: boolean;
}

/** Which finalizers to take off by hand (all when absent), who does so, and why. */
export interface ForcedDeed {
  readonly finalizers?: readonly string[];
  readonly by: string;
  readonly reason: string;
}

/** How objects change. A write that is refused has changed nothing. */
export interface ResourceWrites {
  /** @throws StatusError AlreadyExists; NotFound when the tenant does not exist; Conflict when it is being deleted. */
  create(scope: Scope, resource: NewResource): Promise<ResourceRow>;

  /** Replaces the desired state, if the preconditions hold; a write that changes nothing returns the object as it is. */
  update(scope: Scope, key: ResourceKey, state: DesiredState, preconditions: Preconditions): Promise<ResourceRow>;

  /**
   * Replaces the status, if the preconditions hold. `lastTransitionTime` of a condition whose status is new is the time of the
   * write. `observedGeneration` never goes back (Conflict), and is never above
   * the generation (Invalid). What controllers own, nobody else changes (Forbidden).
   * @param reporter one of the kind's controllers elsewhere, which changes its own parts: what it leaves out of others
   * stays. Its `observedGeneration` is what it has seen; the object's is what all controllers have.
   * @throws StatusError Fenced when its token is not the highest that came.
   */
  updateStatus(
    scope: Scope,
    key: ResourceKey,
    status: JsonText,
    preconditions: Preconditions,
    reporter?: Reporter,
  ): Promise<ResourceRow>;

  /**
   * Deletes, if the preconditions hold: at once without finalizers (`gone`), otherwise by marking the object. A second
   * request changes nothing, but that it may name another policy for the dependents.
   */
  delete(
    scope: Scope,
    key: ResourceKey,
    preconditions: Preconditions,
    propagation?: PropagationPolicy,
  ): Promise<Removal>;

  /**
   * Takes finalizers off an object that is being deleted, whoever they belong to, and keeps who did so and why. `orphan`
   * stays: it comes off by itself, and without it the dependents would go too.
   * @throws StatusError Conflict when the object is not being deleted.
   */
  forceDelete(scope: Scope, key: ResourceKey, preconditions: Preconditions, deed: ForcedDeed): Promise<Removal>;
}

export interface ResourceStore extends ResourceWrites {
  /** The current object, without its secret paths; undefined when the scope has none. */
  get(scope: Scope, key: ResourceKey): Promise<ResourceRow | undefined>;

  /** The current object with its secret paths: for a write that keeps what it does not name. Never shown. */
  getForUpdate(scope: Scope, key: ResourceKey): Promise<ResourceRow | undefined>;

  /**
   * One page. It waits, one second at most, until what was committed when it began is published, so that a caller
   * reads its own writes; then shows the state at the log's head.
   */
  list(scope: Scope, params: ListParams): Promise<ListPage>;

  /** How many objects follow a place of a list without selectors, now; undefined when they are more than 100,000. */
  countAfter(
    scope: Scope,
    params: Pick<ListParams, 'group' | 'kind' | 'tenant' | 'after'>,
  ): Promise<number | undefined>;

  /** Whether the log has lost what follows one of these points to retention. Streams that are gone do not count. */
  isBehindRetention(points: ReadonlyMap<bigint, LogPoint>): Promise<boolean>;

  /** How many objects of each kind a tenant has and may have; nothing of a tenant that the scope has not. */
  quota(scope: Scope, tenant: string): Promise<ObjectQuota>;

  /** A resourceVersion that no committed object is above. Without a scope: it tells of no object. */
  newestVersion(): Promise<bigint>;

  /** The state of the scope's open streams at their heads: what `initial=true` shows. Kinds: all when absent. */
  snapshot(
    scope: Scope,
    kinds: readonly { readonly group: string; readonly kind: string }[] | undefined,
  ): Promise<Snapshot>;

  /**
   * The same writes with nothing left of them: no change, no event. Each is refused for what would refuse the real one,
   * and answers what that would, but for `resourceVersion`: the one before, empty for a creation.
   * @throws StatusError TooManyRequests when too many are under way.
   */
  readonly dryRun: ResourceWrites;
}

/**
 * PORT. What is due, and the right to do it. Items are touched by the store in the transaction of each change, so nothing
 * here can be forgotten; any number of processes may claim at once.
 */

import type { JsonObject, JsonValue } from '#core/json.ts';
import type { KindName } from '#core/reconcile/controller.ts';
import type { ResourceObject, ResourceRow } from '#core/resource.ts';

/** 0 deletions, 1 changes, 2 timers, retries and others' reports, 3 resync. */
export type ItemClass = 0 | 1 | 2 | 3;

/** One pass that may begin: its object's lease is ours. */
export interface ClaimedPass {
  /** Of the controller. */
  readonly controller: string;
  /** As it is now, with its secrets. */
  readonly row: ResourceRow;
  readonly fencingToken: bigint;
  /** The lease before was never given back: its holder died in the middle, or was frozen. */
  readonly wasAbandoned: boolean;
  /** Passes in a row that never ended. */
  readonly lostPasses: number;
  readonly touches: bigint;
  /** Passes in a row that failed. */
  readonly attempts: number;
  readonly itemClass: ItemClass;
}

/** What a pass reports of its object: its own conditions, fields and external objects, and nothing of others. */
export interface Report {
  readonly conditions: readonly ReportedCondition[];
  readonly removedConditions: readonly string[];
  readonly fields: Readonly<Record<string, JsonValue>>;
  readonly removedFields: readonly string[];
  /** All of this controller; absent: as they were. */
  readonly resources?: readonly ReportedResource[];
}

export interface ReportedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

export interface ReportedResource {
  readonly class: string;
  readonly id: string;
  readonly state: 'present' | 'absent' | 'unknown';
  /** Why it is unknown. */
  readonly message?: string;
}

export interface ReportedEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface PassEnd {
  readonly generation: number;
  /** Absent: the status stays as it is. */
  readonly report?: Report | undefined;
  /** Takes the controller's finalizer off. */
  readonly finalized: boolean;
  readonly events: readonly ReportedEvent[];
  /** When it is due again if nothing touches it before, and as what. */
  readonly next: { readonly itemClass: ItemClass; readonly afterMs: number };
  /** Absent: a good pass. */
  readonly error?: string | undefined;
  readonly isTerminal: boolean;
  /** What the deletion waits for. */
  readonly blocked?: { readonly reason: string; readonly message: string } | undefined;
  /** The function still runs, though it was told to end: the object stays ours for as long as its lease is renewed. */
  readonly keepLease?: boolean;
}

/**
 * `again`: finished, and due at once, since something changed meanwhile; `fenced`: the lease was lost, nothing is written;
 * `gone`: the object is not there any more.
 */
export type FinishOutcome = 'finished' | 'again' | 'fenced' | 'gone';

/** A state of a watched object that is yet to be mapped. */
export interface WatchChange {
  readonly id: bigint;
  readonly controller: string;
  readonly tenant: string;
  readonly object: ResourceObject;
}

export interface WorkQueue {
  /** Due passes, one for each object, and their leases. @param limit at most so many. */
  claim(controllers: readonly string[], limit: number): Promise<readonly ClaimedPass[]>;

  /** Extends the leases of these passes. @returns the uids of those that were lost. */
  renew(passes: readonly ClaimedPass[]): Promise<readonly string[]>;

  /**
   * Ends a pass, all or nothing.
   * @throws {StatusError} Forbidden for a report of what belongs to another controller; nothing is written.
   */
  finish(pass: ClaimedPass, end: PassEnd): Promise<FinishOutcome>;

  /** Gives back the lease of a pass whose end has kept it. */
  release(pass: ClaimedPass): Promise<void>;

  /** Puts the controller's finalizer on the object of a pass. @returns whether it is there; false when the lease is lost. */
  addFinalizer(pass: ClaimedPass): Promise<boolean>;

  /**
   * How long until there may be something to claim that is not there now, in milliseconds; undefined when nothing is to
   * come. An item that a lease holds counts from the end of the lease, which its pass may not live to give back; what is
   * due of changes and deletions, and held by nobody, is for `claim` to find.
   */
  nextDueMs(controllers: readonly string[]): Promise<number | undefined>;

  /** States of watched objects to be mapped, oldest first, but for those that were postponed. */
  watchChanges(controllers: readonly string[], limit: number): Promise<readonly WatchChange[]>;

  /** They cannot be mapped now: they come again after this long. */
  postponeWatchChanges(changes: readonly WatchChange[], afterMs: number): Promise<void>;

  /** They are mapped: what they concern is due. Names that no object has are left out. */
  finishWatchChanges(changes: readonly WatchChange[], targets: readonly MappedTarget[]): Promise<void>;
}

export interface MappedTarget {
  readonly controller: string;
  /** Of the target, when it is named by `name`. */
  readonly tenant: string;
  readonly target: { readonly name: string } | { readonly uid: string };
}

/** What passes read and write besides their own object. */
export interface PassObjects {
  /** One object as it is now, without secrets; of a cluster-scoped kind whatever the tenant. */
  get(tenant: string, kind: KindName, name: string): Promise<ResourceObject | undefined>;
  /** All objects of a kind in a tenant as they are now, without secrets; complete, or it throws. */
  list(tenant: string, kind: KindName): Promise<readonly ResourceObject[]>;
  /** @returns how it went; `fenced`: the pass has lost its lease, and nothing is written. */
  applyChild(
    pass: ClaimedPass,
    child: {
      readonly kind: KindName;
      readonly name: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly spec: JsonObject;
    },
  ): Promise<'created' | 'updated' | 'unchanged' | 'deleting' | 'conflict' | 'fenced'>;
  /** @returns false when the pass has lost its lease. */
  removeChild(pass: ClaimedPass, kind: KindName, name: string): Promise<boolean>;
}

/** Housekeeping of the queue: what a scheduled function does once in a while. */
export interface WorkUpkeep {
  /** This process runs these controllers. */
  reportAlive(controllers: readonly string[]): Promise<void>;
  /** Gives objects that lack an item one, so that all of them are looked at: complete, page by page. */
  fillItems(controller: string): Promise<void>;
  /** Tells of deletions what they wait for, once they have lasted a minute: complete, page by page. */
  reportBlockedDeletions(): Promise<void>;
  /**
   * Looks at objects whose owners or dependents have changed, in one small transaction: dependents without an owner are
   * deleted, owners that waited for them end.
   * @returns how many changes are done with; 0: there is nothing to do, or somebody else holds what it needs.
   */
  collect(): Promise<number>;
  /** Finds dependents without an owner that nobody has told of: complete, page by page. */
  sweepOwners(): Promise<void>;
  /** Forgets events that are old. */
  expireEvents(): Promise<void>;
  /** Of this installation, in all markers. */
  installation(): Promise<string>;
}

/** How the queue is doing, for metrics; each counted to 10,000. */
export interface WorkState {
  readonly dueItems: number;
  /** Without a good pass since the last bad one. */
  readonly failingItems: number;
  /** Objects that have been on their way out for more than five minutes. */
  readonly stuckDeletions: number;
  /** External objects that bear our marker and whose object is gone. */
  readonly orphans: number;
}

/** What a pass gets: the object as it is now, and the ways to look, to act and to report. */

import type { JsonValue } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { Marker } from '#core/reconcile/marker.ts';
import type { KindName } from '#core/reconcile/controller.ts';
import type { Observation } from '#core/reconcile/observation.ts';
import type { ResourceMetadata, ResourceObject } from '#core/resource.ts';

/** The object of a pass, with its secrets. */
export interface PassObject<Spec extends object, Status extends object> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ResourceMetadata & { readonly uid: string; readonly generation: number };
  readonly spec: Spec;
  readonly status: Partial<Status>;
}

export interface PassContext<Spec extends object = object, Status extends object = object> {
  /** Read when the pass began, under its lease. */
  readonly object: PassObject<Spec, Status>;
  /** `system` for objects of cluster-scoped kinds. */
  readonly tenant: string;
  /** To be put on everything that is made for this object. */
  readonly marker: Marker;
  /**
   * The right to act on this object, rising with every pass of it. An external system that keeps the largest it has seen
   * can refuse whoever was frozen and woke up.
   */
  readonly fencingToken: bigint;
  /** How many passes in a row have failed before this one. */
  readonly attempt: number;
  /** Aborts when time is up, when the lease is lost, and when the process stops. Give it to every call. */
  readonly signal: AbortSignal;
  /** When time is up, in milliseconds since the epoch. */
  readonly deadlineMs: number;
  /** Has the tenant, kind, name, uid and pass (its fencing token) in every line. */
  readonly log: Logger;
  /**
   * Looks at one external object and lists it in `status.resources`: undefined is absent, an error is unknown. A pass
   * whose lease is lost is ended here rather than let near the world.
   * @param resourceClass such as `database`. @param id names it in its class.
   */
  observe<Value>(
    resourceClass: string,
    id: string,
    read: (signal: AbortSignal) => Promise<Value | undefined>,
  ): Promise<Observation<Value>>;
  /** Changes the world: checks the lease first, and passes the signal on. */
  act<Value>(what: string, call: (signal: AbortSignal) => Promise<Value>): Promise<Value>;
  /** The external object is not ours any more and stays, as the spec says: finalize need not see it gone. */
  release(resourceClass: string, id: string): void;
  /** Sets a condition of this controller; written when the pass ends. */
  condition(type: string, status: 'True' | 'False' | 'Unknown', reason: string, message?: string): void;
  /** Sets a field of the status that this controller owns; undefined removes it. Written when the pass ends. */
  report(field: string & keyof Status, value: JsonValue | undefined): void;
  /** Tells why something changed: kept with the object for a while, and shown as a Kubernetes Event. */
  event(type: 'Normal' | 'Warning', reason: string, message: string): void;
  /** One object of the same tenant, or of a cluster-scoped kind, as it is now; undefined when there is none. Without secrets. */
  get(kind: KindName, name: string): Promise<ResourceObject | undefined>;
  /** All objects of a kind in the same tenant, those being deleted too: complete, or it throws. Without secrets. */
  list(kind: KindName): Promise<readonly ResourceObject[]>;
  /** Objects of another kind that this one owns. */
  children<ChildSpec extends object>(kind: Kind<ChildSpec>): Children<ChildSpec>;
}

/** Their changes cause a pass of the owner. Writes are refused in the store once the pass has lost its lease. */
export interface Children<Spec extends object> {
  /** All that have this object as their controlling owner; complete, or it throws. */
  list(): Promise<readonly ResourceObject[]>;
  /**
   * Makes it, or brings its spec and labels to what is given.
   * @throws {OwnershipConflict} for an object of that name that this one does not own.
   */
  apply(
    name: string,
    desired: { readonly spec: Spec; readonly labels?: Readonly<Record<string, string>> },
  ): Promise<void>;
  /** Requests the deletion of one that is owned; nothing when there is none. */
  remove(name: string): Promise<void>;
}

export interface WatchContext {
  /** All objects of a kind in a tenant, as they are now; complete, or it throws. */
  list(kind: KindName, tenant: string): Promise<readonly ResourceObject[]>;
}

/** Something of this name exists and is not ours: it was left as it is. */
export class OwnershipConflict extends Error {
  override readonly name = 'OwnershipConflict';
}

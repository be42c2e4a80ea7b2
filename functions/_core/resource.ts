/**
 * One object as the store holds it. Documents are JSON text, copied from PostgreSQL to the socket without being parsed
 * on the way: lists and events of large objects cost bytes, not objects.
 */

/** JSON text of an object or array, as PostgreSQL prints jsonb. */
export type JsonText = string;

export interface ResourceRow {
  readonly uid: string;
  readonly tenant: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly name: string;
  /** Decimal; larger means later, for one object. Empty where a dry run would have created it. */
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTimestamp: Date;
  readonly deletionTimestamp: Date | null;
  readonly finalizers: readonly string[];
  readonly labels: JsonText;
  readonly annotations: JsonText;
  readonly ownerReferences: JsonText;
  /** Without the kind's secret paths. */
  readonly spec: JsonText;
  readonly status: JsonText;
}

/** Names one object. `tenant` is `system` for cluster-scoped kinds. */
export interface ResourceKey {
  readonly tenant: string;
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

/** What clients send and receive: the Kubernetes object shape. */
export interface ResourceObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ResourceMetadata;
  readonly spec?: Record<string, unknown>;
  readonly status?: Record<string, unknown>;
}

export interface ResourceMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

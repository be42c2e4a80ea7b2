/** Tenants: owners of resources. Creating one opens its event stream. */

import * as v from 'valibot';

import { defineKind, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';

export interface TenantSpec {
  /** For people. */
  readonly displayName?: string | undefined;
  /** How long the event log keeps the tenant's events, when it is Kafka: until either bound is passed. */
  readonly eventRetention?: EventRetention | undefined;
  /** What the tenant may use, where it is not what the installation's configuration says. */
  readonly quota?: TenantQuota | undefined;
}

/** Absent: the installation's default. */
export interface TenantQuota {
  /** Of each kind. */
  readonly objects?: number | undefined;
  /** To each process. */
  readonly requestsPerSecond?: number | undefined;
  /** Open watches at each process. */
  readonly watchers?: number | undefined;
}

export interface EventRetention {
  /** Absent: as long as the installation's default. */
  readonly hours?: number | undefined;
  /** Absent: unbounded. The log removes whole segments: about 1 GiB more may be there. */
  readonly maxBytes?: number | undefined;
}

export interface TenantStatus extends ReportedStatus {
  /** The stream's number, and the topic that new events go to when the log is Kafka. */
  readonly eventStream?: { readonly id: string; readonly topic?: string };
}

const MAX_RETENTION_HOURS = 87_600;
/** Of whatever is counted. */
export const MAX_QUOTA = 1_000_000_000;
/** Less than that is no log: one batch can be as large. */
const MIN_RETENTION_BYTES = 1024 * 1024;

/** The group and kind that name tenants. Whoever has a tenant may read its object. */
export const TENANT_KIND = { group: 'plumbline.dev', kind: 'Tenant' } as const;

export const tenantKind: Kind<TenantSpec, TenantStatus> = defineKind({
  ...TENANT_KIND,
  version: 'v1',
  plural: 'tenants',
  scope: 'Cluster',
  spec: strictObject({
    displayName: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(253))),
    eventRetention: v.optional(
      strictObject({
        hours: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(MAX_RETENTION_HOURS))),
        maxBytes: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(MIN_RETENTION_BYTES))),
      }),
    ),
    quota: v.optional(
      strictObject({
        objects: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_QUOTA))),
        requestsPerSecond: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(MAX_QUOTA))),
        watchers: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_QUOTA))),
      }),
    ),
  }),
  status: reportedStatus,
});

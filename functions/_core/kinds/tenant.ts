/** Tenants: owners of resources. Creating one opens its event stream. */

import * as v from 'valibot';

import { defineKind, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';

export interface TenantSpec {
  /** For people. */
  readonly displayName?: string | undefined;
  /** How long the tenant's events stay readable, at least. Absent: the installation's retention. */
  readonly eventRetentionHours?: number | undefined;
}

/** The group and kind that name tenants. Whoever has a tenant may read its object. */
export const TENANT_KIND = { group: 'plumbline.dev', kind: 'Tenant' } as const;

export const tenantKind: Kind<TenantSpec, ReportedStatus> = defineKind({
  ...TENANT_KIND,
  version: 'v1',
  plural: 'tenants',
  scope: 'Cluster',
  spec: strictObject({
    displayName: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(253))),
    eventRetentionHours: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(8760))),
  }),
  status: reportedStatus,
});

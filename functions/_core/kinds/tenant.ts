/** Tenants: owners of resources. Creating one opens its event stream. */

import * as v from 'valibot';

import { defineKind, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';

export interface TenantSpec {
  /** For people. */
  readonly displayName?: string | undefined;
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
  }),
  status: reportedStatus,
});

/** Rights on managed databases. A role's rights on a database are the union of its bindings. */

import * as v from 'valibot';

import { defineKind, type DocumentSchema, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';
import { dnsLabelProblem, dnsSubdomainProblem } from '#core/names.ts';

export interface RoleBindingSpec {
  /** The ManagedDatabase of the same tenant. */
  readonly database: string;
  /** Who gets the rights: a role of the database server. */
  readonly subject: string;
  readonly role: 'reader' | 'writer' | 'owner';
}

/** Where a binding gives rights. */
export interface GrantPlace {
  /** Of the binding's spec, when it gave the rights there. */
  readonly subject: string;
  /** The ManagedDatabase's name and uid. */
  readonly databaseName: string;
  readonly databaseUid: string;
  /** Of the Tenant, which the subject's role belongs to. */
  readonly tenantUid: string;
  readonly server: string;
  /** Names on the server: of the database, the role that owns it, and the subject's role. */
  readonly database: string;
  readonly owner: string;
  readonly role: string;
  /** The binding takes its rights there back: others count on it no more. Written before any is taken. */
  readonly leaving?: true;
}

export interface RoleBindingStatus extends ReportedStatus {
  /** The subject's role on the server. */
  readonly role?: string | undefined;
  /** Every place that may have rights by this binding; written before any is given there. */
  readonly places?: readonly GrantPlace[] | undefined;
}

/** The group and kind that name bindings. */
export const ROLE_BINDING_KIND = { group: 'plumbline.dev', kind: 'RoleBinding' } as const;

const placesStatus: DocumentSchema<Omit<RoleBindingStatus, keyof ReportedStatus>> = v.looseObject({
  role: v.optional(v.string()),
  places: v.optional(
    v.array(
      v.looseObject({
        subject: v.string(),
        databaseName: v.string(),
        databaseUid: v.string(),
        tenantUid: v.string(),
        server: v.string(),
        database: v.string(),
        owner: v.string(),
        role: v.string(),
        leaving: v.exactOptional(v.literal(true)),
      }),
    ),
  ),
});

export const roleBindingKind: Kind<RoleBindingSpec, RoleBindingStatus> = defineKind({
  ...ROLE_BINDING_KIND,
  version: 'v1',
  plural: 'rolebindings',
  scope: 'Namespaced',
  spec: strictObject({
    database: v.pipe(v.string(), named(dnsSubdomainProblem)),
    subject: v.pipe(v.string(), named(dnsLabelProblem)),
    role: v.picklist(['reader', 'writer', 'owner']),
  }),
  status: v.intersect([reportedStatus, placesStatus]),
});

function named(
  problemOf: (name: string) => string | undefined,
): v.CheckAction<string, (issue: { input: string }) => string> {
  return v.check(
    (name: string) => problemOf(name) === undefined,
    (issue: { input: string }) => problemOf(issue.input) ?? '',
  );
}

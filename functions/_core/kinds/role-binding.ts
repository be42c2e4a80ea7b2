/** Grants on managed databases. A role's rights are the union of its bindings. */

import * as v from 'valibot';

import { defineKind, type Kind } from '#core/kind.ts';
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

export const roleBindingKind: Kind<RoleBindingSpec, ReportedStatus> = defineKind({
  group: 'plumbline.dev',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
  spec: strictObject({
    database: v.pipe(v.string(), named(dnsSubdomainProblem)),
    subject: v.pipe(v.string(), named(dnsLabelProblem)),
    role: v.picklist(['reader', 'writer', 'owner']),
  }),
  status: reportedStatus,
});

function named(
  problemOf: (name: string) => string | undefined,
): v.CheckAction<string, (issue: { input: string }) => string> {
  return v.check(
    (name: string) => problemOf(name) === undefined,
    (issue: { input: string }) => problemOf(issue.input) ?? '',
  );
}

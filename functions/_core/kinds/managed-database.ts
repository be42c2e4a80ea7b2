/** Databases that are provisioned and kept on a PostgreSQL server: a database, and a role that owns it. */

import * as v from 'valibot';

import { defineKind, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';

export interface ManagedDatabaseSpec {
  readonly provider: 'postgresql';
  /** The owner's password. Written and never read. */
  readonly password?: string | undefined;
  /** How many connections the database takes at once. Absent: the server's limit. */
  readonly connectionLimit?: number | undefined;
  /** Whether to take over a database of this name that bears no mark of ours. Otherwise such a one is left alone. */
  readonly adoptionPolicy: 'Never' | 'AdoptUnowned';
  /** What becomes of the database when the object is deleted. */
  readonly deletionPolicy: 'Delete' | 'Retain';
}

export const managedDatabaseKind: Kind<ManagedDatabaseSpec, ReportedStatus> = defineKind({
  group: 'plumbline.dev',
  version: 'v1',
  kind: 'ManagedDatabase',
  plural: 'manageddatabases',
  scope: 'Namespaced',
  spec: strictObject({
    provider: v.optional(v.picklist(['postgresql']), 'postgresql'),
    password: v.optional(v.pipe(v.string(), v.minLength(12), v.maxLength(256))),
    connectionLimit: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(10_000))),
    adoptionPolicy: v.optional(v.picklist(['Never', 'AdoptUnowned']), 'Never'),
    deletionPolicy: v.optional(v.picklist(['Delete', 'Retain']), 'Delete'),
  }),
  status: reportedStatus,
  redact: ['spec.password'],
});

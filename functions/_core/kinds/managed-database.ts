/** Databases that are provisioned and kept on a PostgreSQL server: a database, and a role that owns it. */

import * as v from 'valibot';

import { defineKind, type DocumentSchema, type Kind } from '#core/kind.ts';
import { reportedStatus, type ReportedStatus } from '#core/kinds/reported-status.ts';
import { strictObject } from '#core/kinds/strict-object.ts';
import { dnsLabelProblem } from '#core/names.ts';

export interface ManagedDatabaseSpec {
  /** A server of the installation's configuration. Cannot change once the database was made. */
  readonly server: string;
  /** Names the role that owns the database, and this one only. Absent: after the object. Cannot change either. */
  readonly owner?: string | undefined;
  /** Made when they are missing; those that are no longer named stay, for data may depend on them. */
  readonly extensions?: readonly string[] | undefined;
  /** How many connections the database takes at once. Absent: the server's limit. */
  readonly connectionLimit?: number | undefined;
  /** Whether to take over a database of this name that bears no mark of ours. Otherwise such a one is left alone. */
  readonly adoptionPolicy: 'Never' | 'AdoptUnowned';
  /** What becomes of the database and its owner when the object is deleted. */
  readonly deletionPolicy: 'Delete' | 'Retain';
  /** Whether deletion ends sessions that are connected, rather than wait for them. */
  readonly force?: boolean | undefined;
  /** The owner gets a new password whenever this changes to another text. */
  readonly rotationToken?: string | undefined;
}

export interface ManagedDatabaseStatus extends ReportedStatus {
  /** Where the database lies. The first three are written before anything is made. */
  readonly server?: string | undefined;
  readonly database?: string | undefined;
  /** The role that owns it. */
  readonly owner?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** The owner's. No answer, event or log has it. */
  readonly password?: string | undefined;
  /** The rotation token that this password was made for. */
  readonly rotationToken?: string | undefined;
}

/** The group and kind that name managed databases. */
export const MANAGED_DATABASE_KIND = { group: 'plumbline.dev', kind: 'ManagedDatabase' } as const;

const MAX_EXTENSIONS = 64;
const EXTENSION = /^[a-z0-9][a-z0-9_-]{0,61}$/;

const text = v.optional(v.string());
const placedStatus: DocumentSchema<Omit<ManagedDatabaseStatus, keyof ReportedStatus>> = v.looseObject({
  server: text,
  database: text,
  owner: text,
  host: text,
  port: v.optional(v.pipe(v.number(), v.safeInteger())),
  password: text,
  rotationToken: text,
});

export const managedDatabaseKind: Kind<ManagedDatabaseSpec, ManagedDatabaseStatus> = defineKind({
  ...MANAGED_DATABASE_KIND,
  version: 'v1',
  plural: 'manageddatabases',
  scope: 'Namespaced',
  spec: strictObject({
    server: v.optional(dnsLabel(), 'local'),
    owner: v.optional(dnsLabel()),
    extensions: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(EXTENSION, 'must be the name of an extension, such as "pg_trgm"'))),
        v.maxLength(MAX_EXTENSIONS),
        v.check((names) => new Set(names).size === names.length, 'must not have a name twice'),
      ),
    ),
    connectionLimit: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(10_000))),
    adoptionPolicy: v.optional(v.picklist(['Never', 'AdoptUnowned']), 'Never'),
    deletionPolicy: v.optional(v.picklist(['Delete', 'Retain']), 'Delete'),
    force: v.optional(v.boolean()),
    rotationToken: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(253))),
  }),
  status: v.intersect([reportedStatus, placedStatus]),
  redact: ['status.password'],
});

function dnsLabel(): v.GenericSchema<string, string> {
  return v.pipe(
    v.string(),
    v.check((name) => dnsLabelProblem(name) === undefined, 'must be a DNS label: 1 to 63 of a-z, 0-9 and "-"'),
  );
}

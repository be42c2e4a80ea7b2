/**
 * The body of a write: an object in the shape of Kubernetes, checked up to where its kind's schemas begin. System fields
 * that clients send back (uid, generation, timestamps …) are never trusted: they are conditions, or nothing.
 */

import { fieldPath } from '#core/field-path.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import { apiVersionOf, type Kind } from '#core/kind.ts';
import { withoutAppliedSecrets } from '#core/last-applied.ts';
import { isResourceVersion } from '#core/names.ts';
import { readChosenMetadata, type ChosenMetadata } from '#core/object-metadata.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import { invalid, StatusError, type StatusCause } from '#core/status-error.ts';

/** What the URL says about the object. */
export interface ObjectAddress {
  readonly kind: Kind;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  /** Absent when the URL names a collection. */
  readonly name?: string;
}

/** An object as a client wants it. */
export interface ObjectRequest {
  /** From the body; undefined when it has none. */
  readonly name: string | undefined;
  readonly generateName: string | undefined;
  readonly preconditions: Preconditions;
  /** The client asks for a deletion time. Only objects that are being deleted have one. */
  readonly hasDeletionTimestamp: boolean;
  readonly chosen: ChosenMetadata;
  readonly spec: JsonObject | undefined;
  /** Fields outside of spec and status that do not exist. */
  readonly unknownFields: readonly string[];
}

/** A status as a controller reports it. */
export interface StatusRequest {
  readonly preconditions: Preconditions;
  readonly status: JsonObject | undefined;
}

const MAX_UID_CHARACTERS = 128;
const TOP_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
const METADATA_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'managedFields',
  'selfLink',
]);

/**
 * Reads an object.
 * @throws {StatusError} BadRequest when body and URL name different objects; Invalid with one cause per field.
 */
export function readObject(body: JsonObject, address: ObjectAddress): ObjectRequest {
  const causes: StatusCause[] = [];
  const metadata = metadataOf(body, causes);
  const unknownFields = [...unknownIn(body, TOP_FIELDS), ...unknownIn(metadata, METADATA_FIELDS, 'metadata')];
  checkAddress(body, metadata, address);

  const preconditions = readPreconditions(metadata, 'metadata', causes);
  for (const field of ['name', 'generateName']) assertText(metadata[field], `metadata.${field}`, causes);
  const chosen = readChosenMetadata(metadata, causes, unknownFields);
  const annotations = withoutAppliedSecrets(chosen.annotations, address.kind, causes);
  const spec = partOf(body, 'spec', causes);
  refuse(causes, address, metadata);
  return {
    name: textOf(metadata['name']),
    generateName: textOf(metadata['generateName']),
    preconditions,
    hasDeletionTimestamp: (metadata['deletionTimestamp'] ?? null) !== null,
    chosen: { ...chosen, annotations },
    spec,
    unknownFields,
  };
}

function unknownIn(parent: JsonObject, known: ReadonlySet<string>, ...at: string[]): string[] {
  return Object.keys(parent).flatMap((key) => (known.has(key) ? [] : [fieldPath([...at, key])]));
}

/** Reads what counts of an object that is sent to `/status`. @throws {StatusError} as `readObject` does. */
export function readStatus(body: JsonObject, address: ObjectAddress): StatusRequest {
  const causes: StatusCause[] = [];
  const metadata = metadataOf(body, causes);
  checkAddress(body, metadata, address);
  const preconditions = readPreconditions(metadata, 'metadata', causes);
  const status = partOf(body, 'status', causes);
  refuse(causes, address, metadata);
  return { preconditions, status };
}

/** The conditions in metadata or in a deletion's `preconditions`; empty texts and null are none. */
export function readPreconditions(source: JsonObject, field: string, causes: StatusCause[]): Preconditions {
  const uid = read('uid', (text) =>
    text.length <= MAX_UID_CHARACTERS ? undefined : 'must be the uid of the object, as it was read',
  );
  const resourceVersion = read('resourceVersion', (text) =>
    isResourceVersion(text) ? undefined : 'must be the resourceVersion of the object, as it was read',
  );
  return { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };

  function read(key: string, problemOf: (text: string) => string | undefined): string | undefined {
    const value = source[key] ?? '';
    if (value === '') return undefined;
    const problem = typeof value === 'string' ? problemOf(value) : 'must be a text';
    if (problem) causes.push({ reason: 'FieldValueInvalid', message: problem, field: `${field}.${key}` });
    return typeof value === 'string' ? value : undefined;
  }
}

/** How messages call the object: `Widget "blue"`. */
export function subjectOf({ kind, name }: ObjectAddress, metadata: JsonObject = {}): string {
  const shown = name ?? textOf(metadata['name']) ?? '';
  return `${kind.kind} ${JSON.stringify(shown.slice(0, 253))}`;
}

/** 422 about the object of an address. */
export function invalidObject(
  address: ObjectAddress,
  causes: readonly StatusCause[],
  metadata: JsonObject = {},
): StatusError {
  const { group, plural } = address.kind;
  const name = address.name ?? textOf(metadata['name']);
  return invalid(subjectOf(address, metadata), causes, {
    ...(name !== undefined && { name: name.slice(0, 253) }),
    group,
    kind: plural,
  });
}

function partOf(body: JsonObject, field: string, causes: StatusCause[]): JsonObject | undefined {
  const value = body[field] ?? undefined;
  if (value === undefined || isJsonObject(value)) return value;
  causes.push({ reason: 'FieldValueTypeInvalid', message: 'must be an object', field });
  return undefined;
}

/** Absent is empty; null is neither. */
function metadataOf(body: JsonObject, causes: StatusCause[]): JsonObject {
  const { metadata = {} } = body;
  if (isJsonObject(metadata)) return metadata;
  causes.push({ reason: 'FieldValueTypeInvalid', message: 'must be an object', field: 'metadata' });
  return {};
}

function refuse(causes: readonly StatusCause[], address: ObjectAddress, metadata: JsonObject): void {
  if (causes.length > 0) throw invalidObject(address, causes, metadata);
}

/** What a body says about its own address must be what the URL says; what it leaves out, the URL adds. */
function checkAddress(body: JsonObject, metadata: JsonObject, { kind, namespace, name }: ObjectAddress): void {
  agree('apiVersion', body['apiVersion'], apiVersionOf(kind));
  agree('kind', body['kind'], kind.kind);
  agree('metadata.namespace', metadata['namespace'], namespace ?? '');
  if (name !== undefined) agree('metadata.name', metadata['name'], name);

  function agree(field: string, value: JsonValue | undefined, expected: string): void {
    if (value === undefined || value === null || value === '' || value === expected) return;
    const shown = JSON.stringify(value).slice(0, 100);
    const wanted = expected === '' ? 'nothing: the kind is cluster-scoped' : JSON.stringify(expected);
    throw new StatusError('BadRequest', `${field} in the body is ${shown}, but the URL says ${wanted}`);
  }
}

function assertText(value: JsonValue | undefined, field: string, causes: StatusCause[]): void {
  if (value === undefined || value === null || typeof value === 'string') return;
  causes.push({ reason: 'FieldValueTypeInvalid', message: 'must be a text', field });
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

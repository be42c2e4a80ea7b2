/** What a write stores of an object: its kind's schema applied, its secrets kept, its size bounded. */

import { forbidden } from '#http/authorize.ts';
import { MAX_BODY_BYTES } from '#http/json-body.ts';
import type { FieldValidation } from '#functions/api/field-validation.ts';
import type { ObjectTarget } from '#functions/api/target.ts';
import { immutableCauses } from '#core/immutable-fields.ts';
import { parseJsonObject, sameJson, type JsonObject } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import { type KnownFields, validateKnownFields } from '#core/known-fields.ts';
import type { ChosenMetadata } from '#core/object-metadata.ts';
import { invalidObject, type ObjectAddress } from '#core/object-validation.ts';
import type { DesiredState } from '#core/ports/resources.ts';
import type { JsonText, ResourceRow } from '#core/resource.ts';
import { validateDocument } from '#core/schema-causes.ts';
import { StatusError } from '#core/status-error.ts';

/** The texts that the store takes. */
export function desiredState(chosen: ChosenMetadata, spec: JsonText): DesiredState {
  return {
    finalizers: chosen.finalizers,
    labels: JSON.stringify(chosen.labels),
    annotations: JSON.stringify(chosen.annotations),
    ownerReferences: JSON.stringify(chosen.ownerReferences),
    spec,
  };
}

/** The spec of a new object. @throws {StatusError} Invalid; BadRequest for unknown fields, where they are errors. */
export function newSpec(address: ObjectAddress, name: string, wanted: JsonObject, fields: FieldValidation): JsonText {
  const { kind } = address;
  const { document, causes, unknown } = validateSpec(kind, wanted, fields);
  fields.found(unknown);
  fields.refuse();
  if (causes) throw invalidObject({ ...address, name }, causes);
  return bounded('spec', JSON.stringify(document));
}

export interface SpecWrite {
  /** Whether the caller may write more than metadata. */
  readonly mayChange: boolean;
  /** The write itself says something at a secret path. */
  readonly saysSecrets: boolean;
  readonly fields: FieldValidation;
}

/**
 * The spec of an object that has one. A spec that stays as it is stays word for word, also where the schema has become
 * stricter since: finalizers must come off, and labels change, whatever the schema says today.
 * @param readCurrent gives the stored spec; called only where the answer depends on it.
 * @throws {StatusError} Invalid; BadRequest for unknown fields, where they are errors; Forbidden when the spec changes and
 * the caller may write metadata alone.
 */
export async function changedSpec(
  { kind, caller, key, address }: ObjectTarget,
  wanted: JsonObject,
  { mayChange, saysSecrets, fields }: SpecWrite,
  current: JsonText | (() => Promise<JsonText>),
): Promise<JsonText> {
  // Whether a secret is the stored one is not for those to find out who cannot write it.
  if (saysSecrets && !mayChange) throw forbidden(caller, 'change the spec of', kind, key.tenant);
  const { document, causes, unknown } = validateSpec(kind, wanted, fields);
  const isPlain = document !== undefined && sameJson(document, wanted);
  let before: JsonObject | undefined;
  if (typeof current === 'string' || !isPlain || !mayChange || kind.immutable.length > 0) {
    const stored = typeof current === 'string' ? current : await current();
    before = parseJsonObject(stored);
    if (sameJson(before, wanted)) {
      fields.refuse();
      return stored;
    }
    fields.found(unknown);
    fields.refuse();
    if (document !== undefined && sameJson(before, document)) return stored;
  }
  fields.refuse();
  if (!mayChange) throw forbidden(caller, 'change the spec of', kind, key.tenant);
  if (causes) throw invalidObject(address, causes);
  if (before) refuseImmutable(address, before, document);
  return bounded('spec', JSON.stringify(document));
}

function validateSpec({ spec, redact }: Kind, wanted: JsonObject, { coversRefused }: FieldValidation): KnownFields {
  return validateKnownFields('spec', wanted, spec, redact, coversRefused);
}

/** A default that came after the object is no change. @throws {StatusError} Invalid */
function refuseImmutable(address: ObjectAddress, stored: JsonObject, next: JsonObject): void {
  const { immutable, spec, redact } = address.kind;
  if (immutable.length === 0) return;
  const { document: today = stored } = validateDocument('spec', stored, spec, redact);
  const causes = immutableCauses(immutable, next, stored, today);
  if (causes.length > 0) throw invalidObject(address, causes);
}

/**
 * What a dry run answers to who sends secrets: as if they were others than those that are stored. A guess would else be
 * told from the truth, and leave no trace.
 */
export function asIfChanged(before: ResourceRow, after: ResourceRow): ResourceRow {
  return after.generation > before.generation ? after : { ...after, generation: before.generation + 1 };
}

/** @throws {StatusError} RequestEntityTooLarge: patches and defaults can grow what a body could not hold. */
export function bounded(root: 'spec' | 'status', text: JsonText): JsonText {
  if (text.length <= MAX_BODY_BYTES) return text;
  throw new StatusError('RequestEntityTooLarge', `${root} would be larger than ${MAX_BODY_BYTES} characters`);
}

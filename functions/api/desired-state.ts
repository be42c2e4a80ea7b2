/** What a write stores of an object: its kind's schema applied, its secrets kept, its size bounded. */

import { forbidden } from '#http/authorize.ts';
import { MAX_BODY_BYTES } from '#http/json-body.ts';
import type { ObjectTarget } from '#functions/api/target.ts';
import { immutableCauses } from '#core/immutable-fields.ts';
import { parseJsonObject, sameJson, type JsonObject } from '#core/json.ts';
import type { ChosenMetadata } from '#core/object-metadata.ts';
import { subjectOf, type ObjectAddress } from '#core/object-validation.ts';
import type { DesiredState } from '#core/ports/resources.ts';
import type { JsonText } from '#core/resource.ts';
import { validateDocument } from '#core/schema-causes.ts';
import { invalid, StatusError } from '#core/status-error.ts';

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

/** The spec of a new object. @throws {StatusError} Invalid */
export function newSpec(address: ObjectAddress, name: string, wanted: JsonObject): JsonText {
  const { document, causes } = validateDocument('spec', wanted, address.kind.spec, address.kind.redact);
  if (causes) throw invalid(subjectOf({ ...address, name }), causes);
  return bounded('spec', JSON.stringify(document));
}

/**
 * The spec of an object that has one. A spec that stays as it is stays word for word, also where the schema has become
 * stricter since: finalizers must come off, and labels change, whatever the schema says today.
 * @param readCurrent gives the stored spec; called only where the answer depends on it.
 * @throws {StatusError} Invalid; Forbidden when the spec changes and the caller may write metadata alone.
 */
export async function changedSpec(
  { kind, caller, key, address }: ObjectTarget,
  wanted: JsonObject,
  mayChange: boolean,
  current: JsonText | (() => Promise<JsonText>),
): Promise<JsonText> {
  const validated = validateDocument('spec', wanted, kind.spec, kind.redact);
  const isPlain = validated.document !== undefined && sameJson(validated.document, wanted);
  const needsCurrent = !isPlain || !mayChange || kind.immutable.length > 0;
  const stored = typeof current === 'string' || !needsCurrent ? current : await current();
  if (typeof stored === 'string' && sameJson(parseJsonObject(stored), wanted)) return stored;
  if (!mayChange) throw forbidden(caller, 'change the spec of', kind, key.tenant);
  if (validated.causes) throw invalid(subjectOf(address), validated.causes);
  if (typeof stored === 'string') refuseImmutable(address, parseJsonObject(stored), validated.document);
  return bounded('spec', JSON.stringify(validated.document));
}

/** A default that came after the object is no change. @throws {StatusError} Invalid */
function refuseImmutable(address: ObjectAddress, stored: JsonObject, next: JsonObject): void {
  const { immutable, spec, redact } = address.kind;
  if (immutable.length === 0) return;
  const { document: today = stored } = validateDocument('spec', stored, spec, redact);
  const causes = immutableCauses(immutable, next, stored, today);
  if (causes.length > 0) throw invalid(subjectOf(address), causes);
}

/** @throws {StatusError} RequestEntityTooLarge: patches and defaults can grow what a body could not hold. */
export function bounded(root: 'spec' | 'status', text: JsonText): JsonText {
  if (text.length <= MAX_BODY_BYTES) return text;
  throw new StatusError('RequestEntityTooLarge', `${root} would be larger than ${MAX_BODY_BYTES} characters`);
}

/**
 * What `kubectl apply` notes of the manifest that it has applied: all of it, as JSON, in an annotation that everybody reads.
 * It compares it with the next manifest, so that it can tell what was taken out.
 *
 * @see https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/#how-apply-calculates-differences-and-merges-changes
 */

import { fieldPath } from '#core/field-path.ts';
import { isJsonObject, type JsonObject } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import type { ChosenMetadata } from '#core/object-metadata.ts';
import { hasSecrets, shownDocument } from '#core/secret-paths.ts';
import type { StatusCause } from '#core/status-error.ts';
import { parseStrictJson } from '#core/strict-json.ts';

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * The annotations with the kind's secrets left out of that one. The same manifest gives the same text, so applying it again
 * changes nothing. Adds to `causes` when the secrets in it cannot be found.
 */
export function withoutAppliedSecrets(
  annotations: ChosenMetadata['annotations'],
  { redact }: Pick<Kind, 'redact'>,
  causes: StatusCause[],
): ChosenMetadata['annotations'] {
  const text = annotations[LAST_APPLIED];
  if (text === undefined || text === '' || redact.length === 0) return annotations;
  const manifest = manifestOf(text);
  if (!manifest) {
    const message = 'must be a manifest as JSON: the kind has secret fields, which have to be left out of it';
    causes.push({
      reason: 'FieldValueInvalid',
      message,
      field: fieldPath(['metadata', 'annotations', LAST_APPLIED]),
    });
    return annotations;
  }
  const shown = withoutSecrets(manifest, redact);
  return shown === manifest ? annotations : { ...annotations, [LAST_APPLIED]: `${JSON.stringify(shown)}\n` };
}

/** Undefined for a text that two readers could take for different manifests, as well. */
function manifestOf(text: string): JsonObject | undefined {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function withoutSecrets(manifest: JsonObject, redact: readonly string[]): JsonObject {
  const parts = (['spec', 'status'] as const).flatMap((root) => {
    const document = manifest[root];
    if (!isJsonObject(document) || !hasSecrets(root, document, redact)) return [];
    return [[root, shownDocument(root, document, redact)] as const];
  });
  return parts.length === 0 ? manifest : { ...manifest, ...Object.fromEntries(parts) };
}

/** The two kinds of patches: what they make of an object. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { objectOf, readTypedBody } from '#http/json-body.ts';
import type { FinalizerKnowledge } from '#core/finalizers.ts';
import { applyJsonPatch } from '#core/json-patch.ts';
import { readJsonPatch, type PatchOperation } from '#core/json-patch-operations.ts';
import { leadsTo, type Pointer } from '#core/json-pointer.ts';
import { isJsonObject, parseJson, parseJsonObject, type JsonObject } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import { mergePatch } from '#core/merge-patch.ts';
import { invalidObject } from '#core/object-validation.ts';
import { resourceJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';
import { hasSecrets, keepSecrets, keepSecretsInLists, shownDocument } from '#core/secret-paths.ts';
import { StatusError } from '#core/status-error.ts';

const MERGE_PATCH = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';

export interface Patched {
  readonly object: JsonObject;
  /** The patch itself says something at a secret path of the spec. */
  readonly saysSecrets: boolean;
}

export interface Patch {
  /** The object after the patch, with the secrets that the patch has left alone. @throws {StatusError} Invalid */
  apply(current: ResourceRow): Patched;
  readonly finalizers: FinalizerKnowledge;
}

/** The patch in the body. @throws {StatusError} as `readTypedBody` does; RequestEntityTooLarge */
export async function readPatch(c: Context<HttpEnv>, kind: Kind): Promise<Patch> {
  const body = await readTypedBody(c, [MERGE_PATCH, JSON_PATCH]);
  if (body === undefined) {
    throw new StatusError('BadRequest', `the body is empty; send one of type ${MERGE_PATCH} or ${JSON_PATCH}`);
  }
  return body.type === MERGE_PATCH
    ? mergePatchOf(objectOf(body.value), kind)
    : jsonPatchOf(readJsonPatch(body.value), kind);
}

/** @see https://www.rfc-editor.org/rfc/rfc7386 */
function mergePatchOf(patch: JsonObject, kind: Kind): Patch {
  const { metadata } = patch;
  const version = isJsonObject(metadata) ? (metadata['resourceVersion'] ?? '') : '';
  const saysSecrets = isJsonObject(patch['spec']) && hasSecrets('spec', patch['spec'], kind.redact);
  return { apply, finalizers: { isPinned: version !== '', named: new Set() } };

  /** It is merged into the parts that a client can change, so that what it says of others is told from what was there. */
  function apply(current: ResourceRow): Patched {
    const [spec, status] = [parseJsonObject(current.spec), parseJsonObject(current.status)];
    const patched = mergePatch({ metadata: chosenMetadata(current), spec, status }, patch) as JsonObject;
    const object = withDocuments(patched, (root, document) =>
      keepSecretsInLists(root, root === 'spec' ? spec : status, document, kind.redact),
    );
    return { object, saysSecrets };
  }
}

/**
 * It works on the object as its reader sees it: by tests and copies it could otherwise tell secrets. So secrets are kept as
 * PUT keeps them, and a merge patch removes one.
 */
function jsonPatchOf(operations: readonly PatchOperation[], kind: Kind): Patch {
  return { apply, finalizers: finalizerKnowledge(operations) };

  function apply(current: ResourceRow): Patched {
    const [spec, status] = [parseJsonObject(current.spec), parseJsonObject(current.status)];
    const shown = {
      ...parseJsonObject(resourceJson({ ...current, spec: '{}', status: '{}' })),
      spec: shownDocument('spec', spec, kind.redact),
      ...(current.status !== '{}' && { status: shownDocument('status', status, kind.redact) }),
    };
    const patched = applyJsonPatch(shown, operations);
    if (!isJsonObject(patched)) {
      const message = 'must be an object after the patch';
      const causes = [{ reason: 'FieldValueTypeInvalid', message, field: '' }];
      throw invalidObject({ kind, name: current.name }, causes);
    }
    const object = withDocuments(patched, (root, document) =>
      keepSecrets(root, root === 'spec' ? spec : status, document, kind.redact),
    );
    // It was applied to what a reader sees: what stands at a secret path is the patch's.
    const saysSecrets = isJsonObject(patched['spec']) && hasSecrets('spec', patched['spec'], kind.redact);
    return { object, saysSecrets };
  }
}

const FINALIZERS: Pointer = ['metadata', 'finalizers'];
const RESOURCE_VERSION: Pointer = ['metadata', 'resourceVersion'];

/** A test of the version or of the whole list pins it; a test of an element names that one. */
function finalizerKnowledge(operations: readonly PatchOperation[]): FinalizerKnowledge {
  const tests = operations.flatMap((operation) => (operation.op === 'test' ? [operation] : []));
  const named = tests
    .filter(({ path }) => leadsTo(FINALIZERS, path))
    .flatMap(({ value }) => (typeof value === 'string' ? [value] : []));
  return {
    isPinned: tests.some(({ path }) => leadsTo(path, FINALIZERS) || leadsTo(path, RESOURCE_VERSION)),
    named: new Set(named),
  };
}

function chosenMetadata(row: ResourceRow): JsonObject {
  return {
    labels: parseJsonObject(row.labels),
    annotations: parseJsonObject(row.annotations),
    finalizers: row.finalizers,
    ownerReferences: parseJson(row.ownerReferences),
  };
}

/** What is no document stays: validation names it. */
function withDocuments(
  object: JsonObject,
  change: (root: 'spec' | 'status', document: JsonObject) => JsonObject,
): JsonObject {
  const roots = (['spec', 'status'] as const).flatMap((root) => {
    const document = object[root];
    return isJsonObject(document) ? [[root, change(root, document)] as const] : [];
  });
  return { ...object, ...Object.fromEntries(roots) };
}

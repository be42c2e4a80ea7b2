/** PATCH of one object: JSON Merge Patch. @see https://www.rfc-editor.org/rfc/rfc7386 */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { changedSpec, desiredState } from '#functions/api/desired-state.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { patchObject } from '#functions/api/patching.ts';
import { refuseDeletionTimestamp } from '#functions/api/replace.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize, may } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { parseJson, parseJsonObject, type JsonObject } from '#core/json.ts';
import { mergePatch } from '#core/merge-patch.ts';
import { readObject, readStatus } from '#core/object-validation.ts';
import type { ResourceRow } from '#core/resource.ts';
import { keepSecretsInLists } from '#core/secret-paths.ts';

export const MERGE_PATCH = 'application/merge-patch+json';

/** Merges a patch into labels, annotations, finalizers, owners and spec. A status in it does not count. */
export function patchOne({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key, address } = target;
    authorize(caller, 'metadata', kind, key.tenant);
    const writes = writesFor(c, store);
    const { status: _, ...patch } = await readJsonBody(c, MERGE_PATCH);
    const { preconditions } = readStatus(patch, address);

    const row = await patchObject(store, target, preconditions, async (current, conditions) => {
      const request = readObject(mergePatch(patchable(current), patch) as JsonObject, address);
      if (request.hasDeletionTimestamp) refuseDeletionTimestamp(address, current);
      const wanted = keepSecretsInLists('spec', parseJsonObject(current.spec), request.spec ?? {}, kind.redact);
      const spec = await changedSpec(
        target,
        wanted,
        may(caller, 'update', { scope: kind.scope, tenant: key.tenant }),
        current.spec,
      );
      return writes.update(scope, key, desiredState(request.chosen, spec), conditions);
    });
    return answerObject(c, row);
  };
}

/** The parts of an object that a patch can change. */
function patchable(row: ResourceRow): JsonObject {
  return {
    metadata: {
      labels: parseJsonObject(row.labels),
      annotations: parseJsonObject(row.annotations),
      finalizers: row.finalizers,
      ownerReferences: parseJson(row.ownerReferences),
    },
    spec: parseJsonObject(row.spec),
  };
}

/** PATCH of one object: a merge patch or a JSON patch. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { changedSpec, desiredState } from '#functions/api/desired-state.ts';
import { fieldValidation } from '#functions/api/field-validation.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { readPatch } from '#functions/api/patches.ts';
import { patchObject } from '#functions/api/patching.ts';
import { refuseDeletionTimestamp } from '#functions/api/replace.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize, may } from '#http/authorize.ts';
import type { MethodHandler } from '#http/methods.ts';
import { refuseBlindRemoval } from '#core/finalizers.ts';
import { readObject, subjectOf } from '#core/object-validation.ts';

/** Changes labels, annotations, finalizers, owners and spec. A status in the patch does not count. */
export function patchOne({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key, address } = target;
    authorize(caller, 'metadata', kind, key.tenant);
    const writes = writesFor(c, store);
    const fields = fieldValidation(c);
    const patch = await readPatch(c, kind);
    const version = ifMatch(c);

    const row = await patchObject(store, target, async (current) => {
      const { status: _, ...object } = patch.apply(current);
      const request = readObject(object, address);
      fields.found(request.unknownFields);
      if (request.hasDeletionTimestamp) refuseDeletionTimestamp(address, current);
      refuseBlindRemoval(subjectOf(address), current, request.chosen.finalizers, {
        ...patch.finalizers,
        isPinned: patch.finalizers.isPinned || version !== undefined,
      });
      const mayChange = may(caller, 'update', { scope: kind.scope, tenant: key.tenant });
      const spec = await changedSpec(target, request.spec ?? {}, { mayChange, fields }, current.spec);
      return {
        preconditions: withIfMatch(request.preconditions, version),
        write: (conditions) => writes.update(scope, key, desiredState(request.chosen, spec), conditions),
      };
    });
    fields.warn();
    return answerObject(c, row);
  };
}

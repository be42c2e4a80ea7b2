/** PATCH of one object: a merge patch or a JSON patch. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { refuseStale } from '#functions/api/errors.ts';
import { asIfChanged, changedSpec, desiredState } from '#functions/api/desired-state.ts';
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
import { readObject } from '#core/object-validation.ts';

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
      const { object, saysSecrets } = patch.apply(current);
      const { status: _, ...desired } = object;
      const request = readObject(desired, address);
      const preconditions = withIfMatch(request.preconditions, version);
      refuseStale(target, current, preconditions);
      fields.found(request.unknownFields);
      if (request.hasDeletionTimestamp) refuseDeletionTimestamp(address, current);
      refuseBlindRemoval(address, current, request.chosen.finalizers, {
        ...patch.finalizers,
        isPinned: patch.finalizers.isPinned || version !== undefined,
      });
      const mayChange = may(caller, 'update', { scope: kind.scope, tenant: key.tenant });
      const spec = await changedSpec(target, request.spec ?? {}, { mayChange, saysSecrets, fields }, current.spec);
      return {
        preconditions,
        async write(conditions) {
          const written = await writes.update(scope, key, desiredState(request.chosen, spec), conditions);
          return writes === store.dryRun && saysSecrets ? asIfChanged(current, written) : written;
        },
      };
    });
    fields.warn();
    return answerObject(c, row);
  };
}

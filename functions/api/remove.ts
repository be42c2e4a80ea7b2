/** DELETE of one object. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { aboutObject } from '#functions/api/errors.ts';
import { refuseDryRun } from '#functions/api/parameters.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize } from '#http/authorize.ts';
import { readOptionalJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { wordParameter } from '#http/query.ts';
import { PROPAGATION_POLICIES, readDeleteOptions } from '#core/delete-options.ts';

/** 202 with the object while finalizers hold it; 200 with its last state when it is gone. */
export function removeObject({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key } = target;
    authorize(caller, 'delete', kind);
    refuseDryRun(c);
    wordParameter(c, 'propagationPolicy', PROPAGATION_POLICIES);
    const preconditions = readDeleteOptions((await readOptionalJsonBody(c, 'application/json')) ?? {});
    const { row, gone } = await aboutObject(target, store.delete(scope, key, preconditions));
    return answerObject(c, row, gone ? 200 : 202);
  };
}

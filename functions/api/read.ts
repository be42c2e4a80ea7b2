/** GET of one object. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { objectNotFound } from '#functions/api/errors.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize } from '#http/authorize.ts';
import type { MethodHandler } from '#http/methods.ts';

/** The object as it is now, without its secrets. */
export function readOne({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, scope, key } = objectTarget(c, kinds);
    authorize(caller, 'get', kind, key.tenant);
    const row = await store.get(scope, key);
    if (!row) throw objectNotFound(kind, key.name);
    return answerObject(c, row);
  };
}

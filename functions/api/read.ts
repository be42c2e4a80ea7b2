/** GET of one object. */

import type { ApiDeps } from '#functions/api/deps.ts';
import { objectNotFound } from '#functions/api/errors.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize } from '#http/authorize.ts';
import { answerTagged } from '#http/conditional.ts';
import type { MethodHandler } from '#http/methods.ts';
import { resourceJson } from '#core/resource-json.ts';

/** The object as it is now, without its secrets; 304 for who has it already. */
export function readOne({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, scope, key } = objectTarget(c, kinds);
    authorize(caller, 'get', kind, key.tenant);
    const row = await store.get(scope, key);
    if (!row) throw objectNotFound(kind, key.name);
    // No two states of all objects share a resourceVersion.
    return answerTagged(c, `${resourceJson(row)}\n`, row.resourceVersion);
  };
}

/** DELETE of one object. */

import type { Context } from 'hono';

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { aboutObject } from '#functions/api/errors.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { isTenantKind, objectTarget, type ObjectTarget } from '#functions/api/target.ts';
import type { HttpEnv } from '#http/app.ts';
import { authorize } from '#http/authorize.ts';
import { readOptionalJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { wordParameter } from '#http/query.ts';
import { PROPAGATION_POLICIES, type PropagationPolicy, readDeleteOptions } from '#core/delete-options.ts';
import { BUILT_IN_TENANTS } from '#core/identity.ts';
import { StatusError } from '#core/status-error.ts';

/** 202 with the object while finalizers hold it; 200 with its last state when it is gone. */
export function removeObject({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key } = target;
    authorize(caller, 'delete', kind, key.tenant);
    refuseBuiltIn(target);
    const queried = propagationParameter(c);
    const {
      preconditions: asked,
      isDryRun,
      propagation = queried,
    } = readDeleteOptions((await readOptionalJsonBody(c, 'application/json')) ?? {});
    const preconditions = withIfMatch(asked, ifMatch(c));
    const writes = writesFor(c, store, isDryRun);
    const { row, gone } = await aboutObject(target, writes.delete(scope, key, preconditions, propagation));
    return answerObject(c, row, gone ? 200 : 202);
  };
}

/** As a query says it; a body outranks it. @throws {StatusError} BadRequest, naming the parameter. */
function propagationParameter(c: Context<HttpEnv>): PropagationPolicy | undefined {
  const policy = wordParameter(c, 'propagationPolicy', PROPAGATION_POLICIES);
  const isOrphaning = wordParameter(c, 'orphanDependents', ['true', 'false']);
  if (policy !== undefined || isOrphaning === undefined) return policy;
  return isOrphaning === 'true' ? 'Orphan' : 'Background';
}

/** The database refuses it too. @throws {StatusError} Forbidden */
function refuseBuiltIn({ kind, key: { name } }: ObjectTarget): void {
  if (!isTenantKind(kind) || !BUILT_IN_TENANTS.includes(name)) return;
  throw new StatusError('Forbidden', `tenant ${JSON.stringify(name)} is built in and cannot be deleted`, {
    details: { name, group: kind.group, kind: kind.plural },
  });
}

/** POST of `/force-delete`: an admin takes finalizers off by hand, of an object whose deletion nobody else can end. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { aboutObject } from '#functions/api/errors.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { objectTarget } from '#functions/api/target.ts';
import { authorize } from '#http/authorize.ts';
import { assertFields, readJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { reasonOf } from '#http/reason.ts';
import { isJsonArray, isJsonObject, type JsonValue } from '#core/json.ts';
import { readPreconditions } from '#core/object-validation.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import { invalid, StatusError, type StatusCause } from '#core/status-error.ts';

/** 200 with the last state when it is gone, 202 when something still holds it. Who did it and why is kept. */
export function forceDelete({ store, kinds, logger }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key } = target;
    authorize(caller, 'force', kind, key.tenant);
    const writes = writesFor(c, store);
    const body = await readJsonBody(c, 'application/json');
    assertFields(body, ['reason', 'finalizers', 'preconditions'], 'the body');
    const reason = reasonOf(body);
    const finalizers = finalizersOf(body['finalizers']);
    const preconditions = withIfMatch(preconditionsOf(body['preconditions']), ifMatch(c));
    const deed = { by: caller.subject, reason, ...(finalizers && { finalizers }) };
    const { row, gone } = await aboutObject(target, writes.forceDelete(scope, key, preconditions, deed));
    if (writes === store) {
      const { name, uid } = row;
      const about = { requestId: c.get('requestId'), subject: caller.subject, tenant: key.tenant, name, uid };
      logger.warn(
        { ...about, kind: `${kind.group}/${kind.kind}`, reason, remaining: row.finalizers },
        'finalizers were taken off by hand',
      );
    }
    return answerObject(c, row, gone ? 200 : 202);
  };
}

/** @throws {StatusError} BadRequest */
function finalizersOf(value: JsonValue | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (isJsonArray(value) && value.length > 0 && value.every((each) => typeof each === 'string')) return value;
  throw new StatusError('BadRequest', '"finalizers" must be a list of their names; without it, all are taken off');
}

/** @throws {StatusError} Invalid */
function preconditionsOf(value: JsonValue | undefined): Preconditions {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw new StatusError('BadRequest', '"preconditions" must be an object');
  assertFields(value, ['uid', 'resourceVersion'], '"preconditions"');
  const causes: StatusCause[] = [];
  const preconditions = readPreconditions(value, 'preconditions', causes);
  if (causes.length > 0) throw invalid('the body', causes);
  return preconditions;
}

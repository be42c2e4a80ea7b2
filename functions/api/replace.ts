/** PUT of one object. */

import type { Context } from 'hono';

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { asIfChanged, changedSpec, desiredState } from '#functions/api/desired-state.ts';
import { aboutObject, objectNotFound, refuseStale } from '#functions/api/errors.ts';
import { fieldValidation } from '#functions/api/field-validation.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { objectTarget, type ObjectTarget } from '#functions/api/target.ts';
import type { HttpEnv } from '#http/app.ts';
import { authorize, may } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { parseJsonObject } from '#core/json.ts';
import { invalidObject, readObject, type ObjectAddress } from '#core/object-validation.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { hasSecrets, keepSecrets } from '#core/secret-paths.ts';

/**
 * Replaces labels, annotations, finalizers, owners and spec, if the object still is what the client read. Most writes
 * are one statement; the object is read first only where the answer depends on what it holds.
 */
export function replaceObject({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const target = objectTarget(c, kinds);
    const { kind, caller, scope, key, address } = target;
    authorize(caller, 'metadata', kind, key.tenant);
    const writes = writesFor(c, store);
    const fields = fieldValidation(c);
    const request = readObject(await readJsonBody(c, 'application/json'), address);
    fields.found(request.unknownFields);
    const preconditions = withIfMatch(request.preconditions, ifMatch(c));
    requireResourceVersion(c, address, preconditions);

    const mayHide = kind.redact.some((path) => path.startsWith('spec.'));
    const current = mayHide || request.hasDeletionTimestamp ? await read(target, preconditions) : undefined;
    if (request.hasDeletionTimestamp && current) refuseDeletionTimestamp(address, current);
    const sent = request.spec ?? {};
    const wanted = current ? keepSecrets('spec', parseJsonObject(current.spec), sent, kind.redact) : sent;
    const saysSecrets = hasSecrets('spec', sent, kind.redact);
    const spec = await changedSpec(
      target,
      wanted,
      { mayChange: may(caller, 'update', { scope: kind.scope, tenant: key.tenant }), saysSecrets, fields },
      current ? current.spec : async () => (await read(target, preconditions)).spec,
    );
    const row = await aboutObject(target, writes.update(scope, key, desiredState(request.chosen, spec), preconditions));
    fields.warn();
    const isGuess = writes === store.dryRun && saysSecrets && current !== undefined;
    return answerObject(c, isGuess ? asIfChanged(current, row) : row);
  };

  /** @throws {StatusError} NotFound; Conflict, which counts before all that is wrong with what was made of another state. */
  async function read(target: ObjectTarget, preconditions: Preconditions): Promise<ResourceRow> {
    const { kind, scope, key } = target;
    const row = await store.getForUpdate(scope, key);
    if (!row) throw objectNotFound(kind, key.name);
    refuseStale(target, row, preconditions);
    return row;
  }
}

/** @throws {StatusError} Invalid: a replacement of something unknown would undo what others wrote. */
export function requireResourceVersion(
  c: Context<HttpEnv>,
  address: ObjectAddress,
  preconditions: Preconditions,
): void {
  if (preconditions.resourceVersion !== undefined) return;
  const isAny = c.req.header('if-match')?.trim() === '*';
  const message = isAny
    ? 'must be specified for an update, here or in If-Match, where "*" names no version: send the one that you read'
    : 'must be specified for an update: send the one that you read';
  throw invalidObject(address, [{ reason: 'FieldValueRequired', message, field: 'metadata.resourceVersion' }]);
}

/** A deletion is requested by DELETE alone. On an object that is being deleted, what was sent does not count. */
export function refuseDeletionTimestamp(address: ObjectAddress, current: ResourceRow): void {
  if (current.deletionTimestamp !== null) return;
  const message = 'cannot be set: send DELETE to request the deletion';
  throw invalidObject(address, [{ reason: 'FieldValueForbidden', message, field: 'metadata.deletionTimestamp' }]);
}

/** PUT of one object. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { changedSpec, desiredState } from '#functions/api/desired-state.ts';
import { aboutObject, objectNotFound } from '#functions/api/errors.ts';
import { fieldValidation } from '#functions/api/field-validation.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { objectTarget, type ObjectTarget } from '#functions/api/target.ts';
import { authorize, may } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { parseJsonObject } from '#core/json.ts';
import { readObject, subjectOf, type ObjectAddress } from '#core/object-validation.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { keepSecrets } from '#core/secret-paths.ts';
import { invalid } from '#core/status-error.ts';

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
    requireResourceVersion(address, preconditions);

    const hasSecrets = kind.redact.some((path) => path.startsWith('spec.'));
    const current = hasSecrets || request.hasDeletionTimestamp ? await read(target) : undefined;
    if (request.hasDeletionTimestamp && current) refuseDeletionTimestamp(address, current);
    const sent = request.spec ?? {};
    const wanted = current ? keepSecrets('spec', parseJsonObject(current.spec), sent, kind.redact) : sent;
    const spec = await changedSpec(
      target,
      wanted,
      { mayChange: may(caller, 'update', { scope: kind.scope, tenant: key.tenant }), fields },
      current ? current.spec : async () => (await read(target)).spec,
    );
    const row = await aboutObject(target, writes.update(scope, key, desiredState(request.chosen, spec), preconditions));
    fields.warn();
    return answerObject(c, row);
  };

  async function read({ kind, scope, key }: ObjectTarget): Promise<ResourceRow> {
    const row = await store.getForUpdate(scope, key);
    if (!row) throw objectNotFound(kind, key.name);
    return row;
  }
}

/** @throws {StatusError} Invalid: a replacement of something unknown would undo what others wrote. */
export function requireResourceVersion(address: ObjectAddress, preconditions: Preconditions): void {
  if (preconditions.resourceVersion !== undefined) return;
  const message = 'must be specified for an update: send the one that you read';
  throw invalid(subjectOf(address), [{ reason: 'FieldValueRequired', message, field: 'metadata.resourceVersion' }]);
}

/** A deletion is requested by DELETE alone. On an object that is being deleted, what was sent does not count. */
export function refuseDeletionTimestamp(address: ObjectAddress, current: ResourceRow): void {
  if (current.deletionTimestamp !== null) return;
  const message = 'cannot be set: send DELETE to request the deletion';
  throw invalid(subjectOf(address), [{ reason: 'FieldValueForbidden', message, field: 'metadata.deletionTimestamp' }]);
}

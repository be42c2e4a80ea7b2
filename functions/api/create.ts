/** POST on a collection. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { desiredState, newSpec } from '#functions/api/desired-state.ts';
import { aboutObject } from '#functions/api/errors.ts';
import { tenantNotFound } from '#http/errors.ts';
import { fieldValidation } from '#functions/api/field-validation.ts';
import { namingOf, randomSuffix } from '#functions/api/naming.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { collectionTarget, type ObjectTarget } from '#functions/api/target.ts';
import { tenantExists } from '#functions/api/tenants.ts';
import { authorize } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import { answerMethodNotAllowed, type MethodHandler } from '#http/methods.ts';
import { resourceOf } from '#core/kind.ts';
import { readObject, type ObjectAddress } from '#core/object-validation.ts';
import type { DesiredState, ResourceWrites } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** Creates an object: 201 with it. System fields in the body do not count. */
export function createObject({ store, kinds, nameSuffix = randomSuffix }: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, tenant } = collectionTarget(c, kinds);
    if (tenant === undefined) return answerMethodNotAllowed(c, ['GET']);
    authorize(caller, 'create', kind, tenant);
    const writes = writesFor(c, store);
    const fields = fieldValidation(c);
    const address: ObjectAddress = { kind, ...(kind.scope === 'Namespaced' && { namespace: tenant }) };
    const request = readObject(await readJsonBody(c, 'application/json'), address);
    fields.found(request.unknownFields);
    const naming = namingOf(address, request, nameSuffix);
    const state = desiredState(request.chosen, newSpec(address, naming.shown, request.spec ?? {}, fields));
    const row = await naming.create((name) => create(writes, targetOf(name, tenant), state));
    fields.warn();
    return answerObject(c, row, 201);

    function targetOf(name: string, owner: string): ObjectTarget {
      return {
        kind,
        caller,
        key: { tenant: owner, group: kind.group, kind: kind.kind, name },
        scope: { tenants: [owner] },
        address: { ...address, name },
      };
    }
  };

  async function create(writes: ResourceWrites, target: ObjectTarget, state: DesiredState): Promise<ResourceRow> {
    const { kind, key, scope } = target;
    try {
      return await writes.create(scope, { ...key, ...state });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      if (error.reason === 'NotFound' && !(await tenantExists(store, key.tenant))) throw tenantNotFound(key.tenant);
      if (error.reason !== 'AlreadyExists') return aboutObject(target, Promise.reject(error));
      const existing = await store.get(scope, key);
      const prefix = existing?.deletionTimestamp ? 'object is being deleted: ' : '';
      throw new StatusError(
        'AlreadyExists',
        `${prefix}${resourceOf(kind)} ${JSON.stringify(key.name)} already exists`,
        {
          details: { name: key.name, group: kind.group, kind: kind.plural },
        },
      );
    }
  }
}

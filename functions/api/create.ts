/** POST on a collection. */

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { desiredState, newSpec } from '#functions/api/desired-state.ts';
import { aboutObject } from '#functions/api/errors.ts';
import { tenantNotFound } from '#http/errors.ts';
import { refuseDryRun } from '#functions/api/parameters.ts';
import { collectionTarget, type ObjectTarget } from '#functions/api/target.ts';
import { tenantExists } from '#functions/api/tenants.ts';
import { authorize } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import { answerMethodNotAllowed, type MethodHandler } from '#http/methods.ts';
import { resourceOf } from '#core/kind.ts';
import { dnsSubdomainProblem } from '#core/names.ts';
import { readObject, subjectOf, type ObjectAddress } from '#core/object-validation.ts';
import type { NewResource } from '#core/ports/resources.ts';
import type { ResourceRow } from '#core/resource.ts';
import { invalid, StatusError } from '#core/status-error.ts';

/** Creates an object: 201 with it. System fields in the body do not count. */
export function createObject({ store, kinds }: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, tenant } = collectionTarget(c, kinds);
    if (tenant === undefined) return answerMethodNotAllowed(c, ['GET']);
    authorize(caller, 'create', kind, tenant);
    refuseDryRun(c);
    const address: ObjectAddress = { kind, ...(kind.scope === 'Namespaced' && { namespace: tenant }) };
    const request = readObject(await readJsonBody(c, 'application/json'), address);
    const name = newName(address, request);
    const target: ObjectTarget = {
      kind,
      caller,
      key: { tenant, group: kind.group, kind: kind.kind, name },
      scope: { tenants: [tenant] },
      address: { ...address, name },
    };
    const spec = newSpec(address, name, request.spec ?? {});
    const row = await create(target, { ...target.key, ...desiredState(request.chosen, spec) });
    return answerObject(c, row, 201);
  };

  async function create(target: ObjectTarget, resource: NewResource): Promise<ResourceRow> {
    const { kind, key, scope } = target;
    try {
      return await store.create(scope, resource);
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

function newName(
  address: ObjectAddress,
  request: { name: string | undefined; generateName: string | undefined },
): string {
  const { name, generateName } = request;
  const field = 'metadata.name';
  if (name === undefined) {
    const message = generateName === undefined ? 'required' : 'required: generateName is not supported';
    throw invalid(subjectOf(address), [{ reason: 'FieldValueRequired', message, field }]);
  }
  const problem = dnsSubdomainProblem(name);
  if (problem)
    throw invalid(subjectOf({ ...address, name }), [{ reason: 'FieldValueInvalid', message: problem, field }]);
  return name;
}

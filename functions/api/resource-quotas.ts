/**
 * What a tenant has and may have, as the ResourceQuota that `kubectl get quota` shows. It is read here alone: the limit
 * is that of the Tenant object, or the installation's.
 *
 * @see https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-on-object-count
 */

import type { Context } from 'hono';

import type { ApiDeps } from '#functions/api/deps.ts';
import { refuseWatch } from '#functions/api/parameters.ts';
import { assertVisible } from '#functions/api/target.ts';
import { tenantObject } from '#functions/api/tenants.ts';
import type { HttpEnv } from '#http/app.ts';
import { may, type Verb } from '#http/authorize.ts';
import { tenantNotFound } from '#http/errors.ts';
import type { MethodHandler } from '#http/methods.ts';
import { visibleTo } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { ObjectQuota } from '#core/ports/tenant-limits.ts';
import { seconds } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** Each tenant has one. */
const NAME = 'objects';

/** GET of a tenant's quotas: a list of one. */
export function listQuotas(deps: ApiDeps): MethodHandler {
  return async (c) => {
    refuseWatch(c, 'quotas cannot be watched; list them again');
    const items = [await quotaOf(deps, c, 'list')];
    return c.json({ apiVersion: 'v1', kind: 'ResourceQuotaList', metadata: {}, items });
  };
}

/** GET of one, by its name. */
export function readQuota(deps: ApiDeps): MethodHandler {
  return async (c) => {
    const quota = await quotaOf(deps, c, 'get');
    const name = (c.req.param('name') ?? '').slice(0, 253);
    if (name === NAME) return c.json(quota);
    throw new StatusError('NotFound', `resourcequotas ${JSON.stringify(name)} not found; there is "${NAME}"`, {
      details: { name, kind: 'resourcequotas' },
    });
  };
}

/** @throws {StatusError} NotFound for a tenant that does not exist, and one that the caller does not see; Forbidden. */
async function quotaOf({ store, kinds }: ApiDeps, c: Context<HttpEnv>, verb: Verb): Promise<object> {
  const caller = c.get('caller');
  const tenant = c.req.param('tenant') ?? '';
  assertVisible(tenant, visibleTo(caller));
  if (!may(caller, verb, { scope: 'Namespaced', tenant })) {
    throw new StatusError('Forbidden', `${JSON.stringify(caller.subject)} has no role that may ${verb} quotas`, {
      details: { kind: 'resourcequotas' },
    });
  }
  const owner = await tenantObject(store, tenant);
  if (!owner) throw tenantNotFound(tenant);
  return quotaObject(kinds, owner, await store.quota({ tenants: [tenant] }, tenant));
}

function quotaObject(kinds: KindRegistry, owner: ResourceRow, { limit, uses }: ObjectQuota): object {
  const names = kinds.all.filter(({ scope }) => scope === 'Namespaced').map((kind) => countName(kind));
  const counted = new Map(uses.map((use) => [countName(use), String(use.used)]));
  const all = [...new Set([...names, ...counted.keys()])].toSorted();
  const hard = limit === undefined ? {} : Object.fromEntries(all.map((name) => [name, String(limit)]));
  const used = Object.fromEntries(all.map((name) => [name, counted.get(name) ?? '0']));
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: NAME, namespace: owner.name, creationTimestamp: seconds(owner.creationTimestamp) },
    spec: { hard },
    status: { hard, used },
  };
}

function countName({ group, plural }: { readonly group: string; readonly plural: string }): string {
  return `count/${plural}.${group}`;
}

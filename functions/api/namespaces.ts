/**
 * Tenants as the Namespaces of Kubernetes, to be read: kubectl asks for one to explain what it cannot find, and Kopf begins
 * with the list.
 *
 * @see https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/namespace-v1/
 */

import type { Context } from 'hono';

import type { ApiDeps } from '#functions/api/deps.ts';
import { listObjects } from '#functions/api/list.ts';
import { isTenantKind, type CollectionTarget } from '#functions/api/target.ts';
import { tenantObject } from '#functions/api/tenants.ts';
import type { HttpEnv } from '#http/app.ts';
import { authorize } from '#http/authorize.ts';
import { answerTagged } from '#http/conditional.ts';
import type { MethodHandler } from '#http/methods.ts';
import { seesTenant, SYSTEM_TENANT, visibleTo } from '#core/identity.ts';
import { dnsLabelProblem } from '#core/names.ts';
import { metadataJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** GET of all namespaces that the caller may see: a NamespaceList, in pages. */
export function listNamespaces(deps: ApiDeps): MethodHandler {
  return listObjects(deps, {
    group: '',
    kind: 'Namespace',
    item: namespaceJson,
    target: (c) => tenantsTarget(c, deps),
  });
}

/** GET of one. */
export function readNamespace(deps: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, visible } = tenantsTarget(c, deps);
    authorize(caller, 'get', kind, SYSTEM_TENANT);
    const name = c.req.param('tenant') ?? '';
    const canBe = dnsLabelProblem(name) === undefined && seesTenant(visible, name);
    const row = canBe ? await tenantObject(deps.store, name) : undefined;
    if (!row) {
      const shown = name.slice(0, 253);
      throw new StatusError('NotFound', `namespaces ${JSON.stringify(shown)} not found`, {
        details: { name: shown, kind: 'namespaces' },
      });
    }
    return answerTagged(c, `${namespaceJson(row)}\n`, row.resourceVersion);
  };
}

function tenantsTarget(c: Context<HttpEnv>, { kinds }: ApiDeps): CollectionTarget {
  const caller = c.get('caller');
  const kind = kinds.all.find(isTenantKind);
  if (!kind) throw new Error('the kind of tenants is not registered');
  return { kind, caller, visible: visibleTo(caller), tenant: SYSTEM_TENANT };
}

function namespaceJson(row: ResourceRow): string {
  const phase = row.deletionTimestamp ? 'Terminating' : 'Active';
  return `{"apiVersion":"v1","kind":"Namespace",${metadataJson(row)},"spec":{},"status":{"phase":"${phase}"}}`;
}

/** From a path to what it names, as far as the caller may see it. */

import type { Context } from 'hono';

import { objectNotFound } from '#functions/api/errors.ts';
import { tenantNotFound } from '#http/errors.ts';
import type { HttpEnv } from '#http/app.ts';
import { seesTenant, SYSTEM_TENANT, visibleTo, type Caller, type Scope } from '#core/identity.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Kind } from '#core/kind.ts';
import { TENANT_KIND } from '#core/kinds/tenant.ts';
import { canBeName, dnsLabelProblem } from '#core/names.ts';
import type { ObjectAddress } from '#core/object-validation.ts';
import type { ResourceKey } from '#core/resource.ts';
import { StatusError } from '#core/status-error.ts';

/** A collection of one kind. */
export interface CollectionTarget {
  readonly kind: Kind;
  readonly caller: Caller;
  /** What the caller may read. */
  readonly visible: Scope;
  /** `system` for cluster-scoped kinds; undefined: all tenants that the caller may read. */
  readonly tenant: string | undefined;
}

/** One object, whether it exists or not. */
export interface ObjectTarget {
  readonly kind: Kind;
  readonly caller: Caller;
  readonly key: ResourceKey;
  /** Just wide enough for the object. */
  readonly scope: Scope;
  readonly address: ObjectAddress & { readonly name: string };
}

/** @throws {StatusError} NotFound for an unknown kind, and for a tenant that the caller does not see. */
export function collectionTarget(c: Context<HttpEnv>, kinds: KindRegistry): CollectionTarget {
  const caller = c.get('caller');
  const visible = visibleTo(caller);
  const kind = kindOf(c, kinds);
  const tenant = tenantOf(c, kind, visible);
  return { kind, caller, visible, tenant: kind.scope === 'Cluster' ? SYSTEM_TENANT : tenant };
}

/** @throws {StatusError} NotFound, also for what the caller may not see and for what cannot be a name. */
export function objectTarget(c: Context<HttpEnv>, kinds: KindRegistry): ObjectTarget {
  const { kind, caller, visible, tenant } = collectionTarget(c, kinds);
  const name = c.req.param('name') ?? '';
  if (tenant === undefined) throw noSuchPath(c, `${kind.plural} are namespaced: their path has namespaces/{tenant}`);
  if (!canBeName(name) || !seesObject(visible, kind, tenant, name)) throw objectNotFound(kind, name.slice(0, 253));
  const { group } = kind;
  return {
    kind,
    caller,
    key: { tenant, group, kind: kind.kind, name },
    scope: { tenants: [tenant] },
    address: { kind, name, ...(kind.scope === 'Namespaced' && { namespace: tenant }) },
  };
}

export function isTenantKind(kind: Kind): boolean {
  return kind.group === TENANT_KIND.group && kind.kind === TENANT_KIND.kind;
}

function seesObject(visible: Scope, kind: Kind, tenant: string, name: string): boolean {
  return seesTenant(visible, tenant) || (isTenantKind(kind) && seesTenant(visible, name));
}

function kindOf(c: Context<HttpEnv>, kinds: KindRegistry): Kind {
  const { group = '', version = '', plural = '' } = c.req.param();
  const kind = kinds.atPath(group, version, plural);
  if (kind) return kind;
  const served = kinds.all.map((known) => `${known.group}/${known.version}/${known.plural}`).join(', ');
  throw noSuchPath(c, `there is no such kind; served are ${served}`);
}

/** The tenant in the path, when there is one; `system` is none that a path can name. */
function tenantOf(c: Context<HttpEnv>, kind: Kind, visible: Scope): string | undefined {
  const tenant = c.req.param('tenant');
  if (tenant === undefined) return undefined;
  if (kind.scope === 'Cluster') throw noSuchPath(c, `${kind.plural} are cluster-scoped: their path has no namespace`);
  assertVisible(tenant, visible);
  return tenant;
}

/** @throws {StatusError} NotFound for a tenant in a path that is none, or that the caller does not see. */
export function assertVisible(tenant: string, visible: Scope): void {
  if (dnsLabelProblem(tenant) !== undefined || tenant === SYSTEM_TENANT || !seesTenant(visible, tenant)) {
    throw tenantNotFound(tenant.slice(0, 253));
  }
}

export function noSuchPath(c: Context<HttpEnv>, why: string): StatusError {
  return new StatusError('NotFound', `there is nothing at ${c.req.path.slice(0, 200)}: ${why}`);
}

/** RoleBinding: what gives a subject's role its rights on a managed database, the union over all of its bindings. */

import { defineKind, type Kind } from '#core/kind.ts';
import { MANAGED_DATABASE_KIND } from '#core/kinds/managed-database.ts';
import {
  type GrantPlace,
  ROLE_BINDING_KIND,
  roleBindingKind,
  type RoleBindingSpec,
  type RoleBindingStatus,
} from '#core/kinds/role-binding.ts';
import { TENANT_KIND } from '#core/kinds/tenant.ts';
import type { DatabaseServers } from '#core/ports/database-servers.ts';
import type { WatchContext } from '#core/reconcile/context.ts';
import type { WatchTarget } from '#core/reconcile/controller.ts';
import type { FinalizeResult, ReconcileResult } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import { forgetPlace, giveRights, leavePlace } from '#functions/reconcile/kinds/binding-converge.ts';
import { type BindingContext, isSamePlace, isStale, targetOf } from '#functions/reconcile/kinds/binding-place.ts';
import type { DatabaseKindDeps } from '#functions/reconcile/kinds/managed-database.ts';
import { markedObjects } from '#functions/reconcile/kinds/marked-objects.ts';

/** By hand somebody can change rights without an event: they are looked at every minute. */
const RESYNC_MS = 60_000;

/** The kind with its controller `grants`. */
export function roleBinding({ servers }: DatabaseKindDeps): Kind<RoleBindingSpec, RoleBindingStatus> {
  return defineKind({
    ...roleBindingKind,
    controllers: [
      {
        name: 'grants',
        statusFields: ['role', 'places'],
        resyncMs: RESYNC_MS,
        watches: [{ kind: MANAGED_DATABASE_KIND, map: bindingsOf }],
        reconcile: (ctx) => reconcileBinding(ctx, servers),
        finalize: (ctx) => finalizeBinding(ctx, servers),
        sweep: markedObjects(servers, TENANT_KIND, ['role']),
      },
    ],
  });
}

async function reconcileBinding(ctx: BindingContext, servers: DatabaseServers): Promise<ReconcileResult> {
  const target = await targetOf(ctx);
  const places = ctx.object.status.places ?? [];
  const stale = places.filter((place) => isStale(place, ctx.object.spec, target.place));
  for (const place of stale) {
    await leavePlace(ctx, servers, place);
    forgetPlace(ctx, place);
  }
  const current = places.filter((place) => !stale.includes(place));
  const { place } = target;
  if (!place) {
    ctx.report('places', toJson(current));
    return { notReady: target.notReady };
  }
  ctx.report('role', place.role);
  if (current.some((each) => isSamePlace(each, place))) {
    ctx.report('places', toJson(current));
    return giveRights(ctx, servers, place);
  }
  // Where rights may be given is written down before they are: no crash leaves some that nobody takes back.
  ctx.report('places', toJson([...current, place]));
  return {
    notReady: { reason: 'Planned', message: 'its place is chosen; the rights are given next' },
    requeueAfterMs: 0,
  };
}

/** One that is being deleted counts no more, so what is left of its rights is what others give. */
async function finalizeBinding(ctx: BindingContext, servers: DatabaseServers): Promise<FinalizeResult> {
  const { place } = await targetOf(ctx);
  const places = ctx.object.status.places ?? [];
  // Others may have given its rights already before it did.
  const isNew = place && !places.some((each) => isSamePlace(each, place));
  for (const each of isNew ? [...places, place] : places) await leavePlace(ctx, servers, each);
  return { finalized: true };
}

async function bindingsOf({ metadata }: ResourceObject, ctx: WatchContext): Promise<readonly WatchTarget[]> {
  const bindings = await ctx.list(ROLE_BINDING_KIND, metadata.namespace ?? '');
  return bindings.flatMap((binding) => {
    return binding.spec?.['database'] === metadata.name ? [{ name: binding.metadata.name }] : [];
  });
}

function toJson(places: readonly GrantPlace[]): Record<keyof GrantPlace, string>[] {
  return places.map((place) => ({ ...place }));
}

/** RoleBinding: what gives a subject's role its rights on a managed database, the union over all of its bindings. */

import { type JsonObject, sameJson } from '#core/json.ts';
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
import type { Explanation, FinalizeResult, ReconcileResult } from '#core/reconcile/outcome.ts';
import type { ResourceObject } from '#core/resource.ts';
import { forgetPlace, giveRights, leavePlace } from '#functions/reconcile/kinds/binding-converge.ts';
import { type BindingContext, planPlaces, targetOf } from '#functions/reconcile/kinds/binding-place.ts';
import type { DatabaseKindDeps } from '#functions/reconcile/kinds/managed-database.ts';
import { markedObjects } from '#functions/reconcile/kinds/marked-objects.ts';
import type { RoleShared } from '#functions/reconcile/kinds/subject-role.ts';

/** By hand somebody can change rights without an event: they are looked at every minute. */
const RESYNC_MS = 60_000;
// Nobody tells when others have taken back what they gave. Of many that leave one role together, all of them together
// look ten times a second at most.
const PAUSE_FOR_EACH_MS = 100;
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Of others, in a message. */
const NAMES_TOLD = 5;

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
  const { place, notReady } = await targetOf(ctx);
  if (place) ctx.report('role', place.role);
  const before = ctx.object.status.places ?? [];
  const places = planPlaces(before, ctx.object.spec, place);
  ctx.report('places', toJson(places));
  if (!sameJson(toJson(places), toJson(before))) {
    // Where rights may be given is written down before they are, and where they will be taken before they are. So no crash
    // leaves some that nobody takes back, and no other binding leaves the role to one that has left it already.
    return {
      notReady: { reason: 'Planned', message: 'its places are chosen; rights are taken and given next' },
      requeueAfterMs: 0,
    };
  }
  const kept: GrantPlace[] = [];
  const shared: RoleShared[] = [];
  for (const each of places) {
    const isShared = each.leaving ? await leavePlace(ctx, servers, each) : undefined;
    if (isShared) shared.push(isShared);
    if (isShared || !each.leaving) kept.push(each);
    else forgetPlace(ctx, each);
  }
  ctx.report('places', toJson(kept));
  const result = place ? await giveRights(ctx, servers, place) : { notReady };
  const [first] = shared;
  return first ? { notReady: result.notReady ?? explain(first), requeueAfterMs: pauseMs(first) } : result;
}

/** One that is being deleted counts no more, so what is left of its rights is what others give. */
async function finalizeBinding(ctx: BindingContext, servers: DatabaseServers): Promise<FinalizeResult> {
  const shared: RoleShared[] = [];
  // All of them, for others wait for its rights as it waits for theirs.
  for (const place of ctx.object.status.places ?? []) {
    const isShared = await leavePlace(ctx, servers, place);
    if (isShared) shared.push(isShared);
  }
  const [first] = shared;
  if (!first) return { finalized: true };
  return { finalized: false, blocked: explain(first), requeueAfterMs: pauseMs(first) };
}

function explain({ others, message }: RoleShared): Explanation {
  const told = others.slice(0, NAMES_TOLD).join(', ');
  const more = others.length > NAMES_TOLD ? ` and ${others.length - NAMES_TOLD} more` : '';
  return {
    reason: 'RoleShared',
    message: `waits for RoleBindings that leave the same role: ${told}${more}; ${message}`,
  };
}

function pauseMs({ others }: RoleShared): number {
  return Math.min(Math.max(others.length * PAUSE_FOR_EACH_MS, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
}

async function bindingsOf({ metadata }: ResourceObject, ctx: WatchContext): Promise<readonly WatchTarget[]> {
  const bindings = await ctx.list(ROLE_BINDING_KIND, metadata.namespace ?? '');
  return bindings.flatMap((binding) => {
    return binding.spec?.['database'] === metadata.name ? [{ name: binding.metadata.name }] : [];
  });
}

function toJson(places: readonly GrantPlace[]): JsonObject[] {
  return places.map((place) => ({ ...place }));
}

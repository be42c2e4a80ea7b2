/**
 * Tenants: the controller of their event streams. A stream is opened in the transaction that makes the Tenant, so that no
 * event is without one; here it is told of in the status, and taken away before the Tenant may go.
 */

import type { Kind } from '#core/kind.ts';
import { defineKind } from '#core/kind.ts';
import { tenantKind, type TenantSpec, type TenantStatus } from '#core/kinds/tenant.ts';
import type { TenantStream, TenantStreams } from '#core/ports/tenant-streams.ts';
import type { PassContext } from '#core/reconcile/context.ts';
import { known } from '#core/reconcile/observation.ts';
import type { FinalizeResult, ReconcileResult } from '#core/reconcile/outcome.ts';
import { streamReadiness } from '#functions/reconcile/kinds/stream-readiness.ts';

export interface TenantDeps {
  readonly streams: TenantStreams;
  /** How long watchers that were away have to come back and read the end of a deleted tenant, and those of all to find it. */
  readonly graceMs: number;
}

/** Gives up what the log does not take, so that the tenant can go: "true". */
export const PURGE = 'plumbline.dev/purge-unpublished-events';

/** Streams are looked for every two seconds, also where nobody is told of new ones. A closed one is not found any more. */
const FOUND_WITHIN_MS = 3_000;
const DRAIN_LOOK_MS = 500;
/** A topic that is not there is looked for so often beside the notifications. */
const TOPIC_LOOK_MS = 5_000;

type Context = PassContext<TenantSpec, TenantStatus>;

export function tenants(deps: TenantDeps): Kind<TenantSpec, TenantStatus> {
  return defineKind({
    ...tenantKind,
    controllers: [
      {
        name: 'tenant-stream',
        conditions: ['EventStreamReady'],
        statusFields: ['eventStream'],
        reconcile: (ctx) => reconcile(deps, ctx),
        finalize: (ctx) => finalize(deps, ctx),
      },
    ],
  });
}

async function reconcile(deps: TenantDeps, ctx: Context): Promise<ReconcileResult> {
  const stream = await look(deps, ctx);
  if (!stream) throw new Error('the tenant has no event stream: table stream was changed by hand');
  ctx.report('eventStream', { id: String(stream.id), ...(stream.topic !== undefined && { topic: stream.topic }) });
  const { status, reason, message } = streamReadiness(stream);
  ctx.condition('EventStreamReady', status, reason, message);
  if (status === 'True') return {};
  return { notReady: { reason, message }, requeueAfterMs: TOPIC_LOOK_MS };
}

/** Nothing new may be made in it since its deletion was requested; what is there has to go first. */
async function finalize(deps: TenantDeps, ctx: Context): Promise<FinalizeResult> {
  const { name } = ctx.object.metadata;
  const objects = await deps.streams.objects(name);
  if (objects.size > 0) {
    // Woken by their deletion: nobody has to look.
    const counts = [...objects].map(([kind, count]) => `${count} ${kind}`).join(', ');
    return blocked('ObjectsRemain', `waits until nothing is left in the tenant: ${counts}`);
  }
  const unfoundMs = await unfoundFor(deps, ctx);
  if (unfoundMs > 0) {
    return blocked('WatchersFind', 'watchers over all tenants have a moment to find it', unfoundMs + 10);
  }
  if (!(await ctx.act('close the stream', () => deps.streams.close(name)))) {
    return blocked('ObjectsRemain', 'an object was made in the tenant at this moment', DRAIN_LOOK_MS);
  }
  const stream = await look(deps, ctx);
  if (!stream || stream.isRemoved) return { finalized: true };
  return removeStream(deps, ctx, stream);
}

/** For how long its stream must stay open still, so that whoever looks for new ones, told or not, has seen it. */
async function unfoundFor(deps: TenantDeps, ctx: Context): Promise<number> {
  if (deps.graceMs === 0) return 0;
  const stream = await look(deps, ctx);
  if (!stream || stream.isClosed) return 0;
  return Math.min(deps.graceMs, FOUND_WITHIN_MS) - stream.openForMs;
}

async function removeStream(deps: TenantDeps, ctx: Context, stream: TenantStream): Promise<FinalizeResult> {
  const purge = ctx.object.metadata.annotations?.[PURGE] === 'true';
  const drainedForMs = await ctx.act('drain the stream', () => deps.streams.drain(stream.id, purge));
  if (drainedForMs === undefined) {
    const held = stream.quarantine ?? stream.problem;
    const advice = `; the annotation ${PURGE}: "true" gives them up`;
    return blocked(
      'EventsUnpublished',
      `waits until its last events are published: ${stream.unpublished}${held === undefined ? '' : ` (${held})`}${advice}`,
      DRAIN_LOOK_MS,
    );
  }
  const leftMs = deps.graceMs - drainedForMs;
  if (!purge && deps.graceMs > 0 && leftMs > 0) {
    return blocked('WatchersRead', 'watchers that were away have a moment to read its end', leftMs + 10);
  }
  const isGone = await ctx.act('remove the stream', () => deps.streams.removeEvents(stream));
  if (!isGone) return blocked('StreamRemains', 'its events are being removed', DRAIN_LOOK_MS);
  await ctx.act('release the stream', () => deps.streams.markRemoved(stream.id));
  const left = await look(deps, ctx);
  return left && !left.isRemoved
    ? blocked('StreamRemains', 'its stream is there again', DRAIN_LOOK_MS)
    : { finalized: true };
}

/** The stream that is still in the log; a removed one is absent. */
async function look({ streams }: TenantDeps, ctx: Context): Promise<TenantStream | undefined> {
  const { name } = ctx.object.metadata;
  return known(
    await ctx.observe('event-stream', name, async () => {
      const stream = await streams.find(name);
      return stream?.isRemoved ? undefined : stream;
    }),
    `the event stream of tenant ${name}`,
  );
}

function blocked(reason: string, message: string, requeueAfterMs?: number): FinalizeResult {
  return { finalized: false, blocked: { reason, message }, ...(requeueAfterMs !== undefined && { requeueAfterMs }) };
}

/** `GET /watch/v1/events?group=…`: a client becomes a member of a group. */

import type { Context } from 'hono';

import { isOpenSet } from '#core/identity.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { WatchGroups } from '#core/ports/watch-groups.ts';
import type { SseTransport } from '#core/ports/sse.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';
import type { HttpEnv } from '#http/app.ts';
import { opening } from '#functions/watch/frames.ts';
import { groupReadyFrame } from '#functions/watch/groups/group-frames.ts';
import type { GroupRequest } from '#functions/watch/groups/requests/group-request.ts';
import { noteOldest } from '#functions/watch/groups/note-oldest.ts';
import { LEASE_MS } from '#functions/watch/groups/renewals.ts';
import { GroupSession } from '#functions/watch/groups/member/session.ts';
import type { Hub } from '#functions/watch/hub.ts';
import { assertTenantsExist } from '#functions/watch/start/start.ts';
import { viewOf } from '#functions/watch/view.ts';
import type { WatchRequest } from '#functions/watch/watch-request.ts';

export interface JoinDeps {
  readonly hub: Hub;
  readonly log: EventLog;
  readonly groups: WatchGroups;
  readonly streams: StreamDirectory;
  readonly transport: SseTransport<never, Response>;
}

/**
 * @throws {StatusError} NotFound for a named tenant that is not there; what `WatchGroups.join` throws; TooManyRequests;
 * ServiceUnavailable.
 */
export async function joinGroup(
  { hub, log, groups, streams, transport }: JoinDeps,
  c: Context<HttpEnv>,
  request: WatchRequest,
  { name, start, limits, ackWaitMs }: GroupRequest,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const caller = c.get('caller');
  const { audience, subject } = caller;
  const { tenants, granted, tenantsAreNamed, selection } = request;
  const openStreams = await streams.list({ tenants });
  const open = openStreams.map(({ tenant }) => tenant);
  assertTenantsExist(request, new Set(open));
  hub.assertRunning();
  hub.assertFilterAllowed(caller, selection.filter);
  const view = viewOf(caller, granted, tenantsAreNamed);
  const identity = { audience, tenants: granted, owner: subject, name };
  if (start === 'earliest' && !(await groups.exists(identity))) await noteOldest(log, openStreams);
  const giveBack = hub.takePlace(view);
  const leaseEndsAtMs = performance.now() + LEASE_MS;
  const { blockedTenants } = view;
  const joining = groups.join({ ...identity, selection: selection.key, start, blockedTenants, leaseMs: LEASE_MS });
  const membership = await joining.catch((error: unknown) => {
    giveBack();
    throw error;
  });
  try {
    hub.assertRunning();
  } catch (error) {
    giveBack();
    await groups.leave([membership.member], []);
    throw error;
  }
  const { sink, answer } = transport.open(c.env as never, headers, {
    onDrain: () => session.onDrain(),
    onClose: () => hub.unregister(session),
  });
  const session = new GroupSession({
    keeper: hub.groups.keeper,
    sink,
    membership,
    audience,
    tenants,
    tenantsAreNamed,
    selection,
    limits,
    ackWaitMs,
    leaseEndsAtMs,
  });
  hub.register(session, view, giveBack);
  const { member, isNew, droppedAt } = membership;
  session.write(
    opening() +
      groupReadyFrame({
        tenants: isOpenSet(tenants) ? '*' : open.toSorted(),
        group: { name, member: String(member), isNew, ...(droppedAt && { droppedAt: droppedAt.toISOString() }) },
      }),
  );
  hub.groups.add(session);
  return answer;
}

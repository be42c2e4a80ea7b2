/** Finds where a watch begins: one look at the directory, and for an initial watch the state itself. */

import type { Cursors, CursorVector } from '#core/cursor.ts';
import { type Audience, isOpenSet, seesTenant, type TenantSet } from '#core/identity.ts';
import type { EventLog } from '#core/ports/event-log.ts';
import type { ResourceStore, Snapshot } from '#core/ports/resources.ts';
import type { Stream, StreamDirectory } from '#core/ports/streams.ts';
import { tenantNotFound } from '#http/errors.ts';
import { earliestVector, headVector, resumeVector } from '#functions/watch/start/start-vector.ts';
import type { WatchRequest } from '#functions/watch/watch-request.ts';

export interface StartDeps {
  readonly log: EventLog;
  readonly streams: StreamDirectory;
  readonly store: ResourceStore;
  readonly cursors: Cursors;
}

export interface Start {
  readonly vector: CursorVector;
  /** What an initial watch shows first. Whoever has it closes it. */
  readonly snapshot?: Snapshot;
}

export interface StartParams {
  readonly audience: Audience;
  readonly request: WatchRequest;
  readonly seal: (vector: CursorVector) => string;
}

/** @throws {StatusError} NotFound for a named tenant that is not there; what `resumeVector` throws; ServiceUnavailable. */
export async function findStart(deps: StartDeps, { audience, request, seal }: StartParams): Promise<Start> {
  const { start, tenants, granted } = request;
  if (start.at === 'initial') return initialStart(deps, request);
  if (start.at === 'cursor') {
    const opened = deps.cursors.open(start.cursor, audience, granted);
    const listed = await deps.streams.list({ tenants: granted }, [...opened.keys()]);
    const [streams, cursor] = visibleOf(listed, opened, tenants);
    assertTenantsExist(request, new Set(streams.filter(({ closed }) => !closed).map(({ tenant }) => tenant)));
    return { vector: await resumeVector(deps.log, { tenants, cursor, streams, seal }) };
  }
  const streams = await deps.streams.list({ tenants });
  assertTenantsExist(request, new Set(streams.map(({ tenant }) => tenant)));
  return { vector: await (start.at === 'earliest' ? earliestVector : headVector)(deps.log, streams) };
}

async function initialStart({ store }: StartDeps, request: WatchRequest): Promise<Start> {
  const snapshot = await store.snapshot({ tenants: request.tenants }, request.selection.kinds);
  try {
    assertTenantsExist(request, new Set(snapshot.streams.keys()));
  } catch (error) {
    await snapshot.close();
    throw error;
  }
  return { vector: snapshot.head, snapshot };
}

/** @throws {StatusError} NotFound for a tenant that the request names and that is not there. */
export function assertTenantsExist({ tenants, tenantsAreNamed }: WatchRequest, existing: ReadonlySet<string>): void {
  if (!tenantsAreNamed || isOpenSet(tenants)) return;
  const missing = tenants.find((name) => !existing.has(name));
  if (missing !== undefined) throw tenantNotFound(missing);
}

/** Without the streams of tenants that are blocked: the cursor may be from before. */
function visibleOf(
  listed: readonly Stream[],
  cursor: CursorVector,
  tenants: TenantSet,
): [streams: readonly Stream[], cursor: CursorVector] {
  const hidden = new Set(listed.filter(({ tenant }) => !seesTenant({ tenants }, tenant)).map(({ id }) => id));
  if (hidden.size === 0) return [listed, cursor];
  return [listed.filter(({ id }) => !hidden.has(id)), new Map([...cursor].filter(([id]) => !hidden.has(id)))];
}

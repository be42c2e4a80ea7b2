/** What the trail and the captured changes prove: that passes of one object never overlapped, nor wrote late. */

import type { Sql } from '#adapters/postgres/client.ts';
import { LEASE_MS } from '#test/fault/chaos/composition.ts';
import type { Freeze } from '#test/fault/chaos/drivers.ts';
import { PARTS } from '#test/fault/chaos/entry-kind.ts';
import type { TrailLine } from '#test/fault/chaos/trail.ts';

export interface TrailFindings {
  /** Passes that were there. */
  readonly passes: number;
  /** Deeds that came after a later pass, and were refused. */
  readonly refused: number;
  /** Among them those of processes that were not frozen meanwhile: two passes ran at once. */
  readonly overlaps: readonly string[];
}

/**
 * Reads the trail in its order: once a pass has begun, nothing of an earlier one is taken, and a token is one pass's. Only
 * who was frozen in the middle of a pass may come too late, and is refused.
 */
export function findOverlaps(trail: readonly TrailLine[], freezes: readonly Freeze[]): TrailFindings {
  const begins = new Map<string, number>();
  const current = new Map<string, TrailLine>();
  const overlaps: string[] = [];
  let passes = 0;
  for (const line of trail) {
    const { uid, fencingToken, controller, holder, deed, isRefused, atMs } = line;
    const last = current.get(uid);
    const told = `${deed} of pass ${fencingToken} of ${uid} by ${controller} in ${holder}`;
    if (isRefused) {
      const begunMs = begins.get(`${uid} ${fencingToken}`) ?? atMs - LEASE_MS;
      const wasFrozen = freezes.some((each) => each.holder === holder && each.fromMs <= atMs && each.toMs >= begunMs);
      if (!wasFrozen) overlaps.push(`${told}, refused though its process was not frozen`);
      continue;
    }
    if (deed === 'begin') {
      passes += 1;
      begins.set(`${uid} ${fencingToken}`, atMs);
      if (last && last.fencingToken >= fencingToken)
        overlaps.push(`${told}, after pass ${last.fencingToken} had begun`);
      current.set(uid, line);
    } else if (last?.fencingToken !== fencingToken || last.holder !== holder || last.controller !== controller) {
      overlaps.push(`${told}, in the middle of pass ${last?.fencingToken} by ${last?.controller} in ${last?.holder}`);
    }
  }
  return { passes, refused: trail.filter(({ isRefused }) => isRefused).length, overlaps };
}

interface Captured {
  readonly uid: string;
  readonly type: string;
  readonly id: bigint;
  readonly observed: number | null;
  readonly writer: bigint | null;
}

export interface CaptureFindings {
  readonly events: number;
  readonly wrong: readonly string[];
}

/** Every captured state of every object, in order: what a status has seen never goes back, and nobody wrote late. */
export async function findStepsBack(sql: Sql): Promise<CaptureFindings> {
  const events = await sql<Captured[]>`
    select uid, type, id, (status ->> 'observedGeneration')::int as observed,
      greatest((status ->> ${`${PARTS[0]}By`})::bigint, (status ->> ${`${PARTS[1]}By`})::bigint) as writer
    from plumbline.outbox order by id`;
  const wrong: string[] = [];
  const last = new Map<string, Captured>();
  for (const event of events) {
    const { uid, id, observed, writer } = event;
    const before = last.get(uid);
    if (before?.type === 'DELETED') wrong.push(`event ${id} of ${uid} after its deletion`);
    if ((before?.observed ?? 0) > (observed ?? 0)) wrong.push(`observedGeneration of ${uid} goes back in event ${id}`);
    if ((before?.writer ?? 0n) > (writer ?? 0n)) wrong.push(`an earlier pass of ${uid} wrote in event ${id}`);
    last.set(uid, event);
  }
  const [gone] = await sql<{ uids: string[] }[]>`
    select array(select distinct o.uid::text from plumbline.outbox o
      where not exists (select from plumbline.resource r where r.uid = o.uid)) as uids`;
  for (const uid of gone?.uids ?? []) {
    if (last.get(uid)?.type !== 'DELETED') wrong.push(`${uid} is gone without an event`);
  }
  return { events: events.length, wrong };
}

/** Ends of passes that were refused, and whose report is in a status all the same. */
export async function findLateReports(
  sql: Sql,
): Promise<{ readonly fenced: number; readonly late: readonly string[] }> {
  const rows = await sql<{ uid: string; token: bigint; isLate: boolean }[]>`
    select f.uid, f.fencing_token as token, exists (
      select from plumbline.outbox o where o.uid = f.uid and f.controller = any (${PARTS.map((part) => `chaos.dev/${part}`)}::text[])
        and o.status ->> (split_part(f.controller, '/', 2) || 'By') = f.fencing_token::text) as "isLate"
    from plumbline.fenced_write f`;
  return {
    fenced: rows.length,
    late: rows.filter(({ isLate }) => isLate).map(({ uid, token }) => `pass ${token} of ${uid}`),
  };
}

/**
 * The ends of passes, many in one statement: what comes while one is under way goes with the next. Each stands or falls by
 * itself.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import { StatusError } from '#core/status-error.ts';
import type { ClaimedPass, FinishOutcome, PassEnd } from '#core/ports/work-queue.ts';

interface Waiting {
  readonly pass: ClaimedPass;
  readonly end: PassEnd;
  readonly resolve: (outcome: FinishOutcome) => void;
  readonly reject: (error: unknown) => void;
}

type Row = {
  readonly outcome: FinishOutcome | 'busy' | null;
  readonly code: string | null;
  readonly message: string | null;
};

/** The most that go together: one that is refused is undone alone, but they are committed together. */
const MOST_TOGETHER = 200;

export function createFinisher(sql: Sql): (pass: ClaimedPass, end: PassEnd) => Promise<FinishOutcome> {
  const waiting: Waiting[] = [];
  let isUnderWay = false;

  return (pass, end) =>
    new Promise((resolve, reject) => {
      waiting.push({ pass, end, resolve, reject });
      if (!isUnderWay) void run();
    });

  async function run(): Promise<void> {
    isUnderWay = true;
    // Those that end in this turn go together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const some = waiting.splice(0, MOST_TOGETHER);
      // In the order in which they are locked, and answered.
      const plain = some.filter(({ end }) => isPlain(end));
      const others = some.filter(({ end }) => !isPlain(end)).toSorted(byUid);
      try {
        const rows = await send(plain, others);
        for (const [index, each] of [...plain, ...others].entries()) settle(each, rows[index]);
      } catch (error) {
        for (const each of some) each.reject(error);
      }
    }
    isUnderWay = false;
  }

  function settle({ resolve, reject }: Waiting, row: Row | undefined): void {
    if (row?.outcome === 'busy')
      reject(new StatusError('ServiceUnavailable', 'a writer that stays open has the object'));
    else if (row?.outcome != null) resolve(row.outcome);
    else if (row?.code === 'PL403') reject(new StatusError('Forbidden', row.message ?? ''));
    else reject(new Error(`${row?.message ?? 'it was not answered'} (${row?.code ?? 'no code'})`));
  }

  /** Each end is a text of its own: what one of them cannot say must not be the others' trouble. */
  async function send(plain: readonly Waiting[], others: readonly Waiting[]): Promise<readonly Row[]> {
    return sql<Row[]>`select outcome, code, message from plumbline.finish_passes(${plain.map(textOf)}::text[],
      ${others.map(textOf)}::text[])`;
  }
}

function byUid(a: Waiting, b: Waiting): number {
  return a.pass.row.uid < b.pass.row.uid ? -1 : 1;
}

/** JSON that the database takes: characters that a text there cannot hold are replaced. */
function textOf({ pass, end }: Waiting): string {
  const fields = {
    controller: pass.controller,
    uid: pass.row.uid,
    token: String(pass.fencingToken),
    touches: String(pass.touches),
    generation: end.generation,
    report: end.report ?? null,
    finalized: end.finalized,
    events: end.events.length > 0 ? end.events : null,
    class: end.next.itemClass,
    afterMs: end.next.afterMs,
    error: end.error ?? null,
    isTerminal: end.isTerminal,
    blockedReason: end.blocked?.reason ?? null,
    blockedMessage: end.blocked?.message ?? null,
    keepLease: end.keepLease ?? false,
  };
  return JSON.stringify(fields, (_key, value: unknown) => (typeof value === 'string' ? storable(value) : value));
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{FFFD}');
}

/** A good pass that reports nothing: by far the most are so. */
function isPlain({ report, finalized, events, error, blocked, isTerminal, keepLease }: PassEnd): boolean {
  return !report && !finalized && events.length === 0 && !error && !blocked && !isTerminal && !keepLease;
}

import { afterEach, expect, test, vi } from 'vitest';

import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import type { StatusError } from '#core/status-error.ts';
import { createBlockSet } from '#core/token-block.ts';
import { createHub, type Hub } from '#functions/watch/hub.ts';
import type { TimedStream, WatchEnd } from '#functions/watch/timed-stream.ts';
import { viewOf } from '#functions/watch/view.ts';
import { noBlocks } from '#test/support/no-blocks.ts';
import { fakeDirectory, fakeLog, noGroups, plainCursors } from '#test/unit/functions/watch/fakes.ts';

let hub: Hub | undefined;
afterEach(() => hub?.stop());

const ignore = (): void => undefined;
const caller = { audience: 'public', subject: 'ann', roles: [], tenants: '*', expiresAtMs: Infinity } as const;

interface Stream extends TimedStream {
  readonly errors: readonly StatusError[];
}

function streamOf(): Stream {
  const errors: StatusError[] = [];
  return {
    mode: 'broadcast',
    isClosed: false,
    filter: undefined,
    endedBy: undefined,
    errors,
    blockedMs: () => 0,
    bookmark: ignore,
    finish: ignore,
    end: (error) => void errors.push(error),
    closed: ignore,
  };
}

function filtering(text: string): Stream {
  return { ...streamOf(), filter: { text, matches: () => true } };
}

function startHub(blocks: TokenBlocks, trustsKey?: (keyId: string) => boolean): WatchEnd[] {
  const ends: WatchEnd[] = [];
  hub = createHub({
    log: fakeLog(),
    streams: fakeDirectory(),
    cursors: plainCursors,
    ...noGroups,
    blocks,
    trustsKey,
    onRedelivery: ignore,
    onDeadLettersFull: () => undefined,
    onFilterError: ignore,
    onIsolationViolation: ignore,
    onError: ignore,
    onOpen: ignore,
    onEnd: (end) => void ends.push(end),
  });
  return ends;
}

test('streams end when it could not be told for a minute who is blocked, and not before', async () => {
  const known = createBlockSet([]);
  const blocks = { known, ageMs: 59_000, current: async () => known };
  const ends = startHub(blocks);
  const stream = streamOf();
  hub?.register(stream, viewOf(caller, '*', false));
  const other = streamOf();
  hub?.register(other, viewOf({ ...caller, expiresAtMs: 0 }, '*', false));
  // Both were looked at.
  await vi.waitFor(() => expect(other.errors).toMatchObject([{ code: 401 }]));
  expect(stream.errors).toEqual([]);
  blocks.ageMs = 61_000;
  await vi.waitFor(() => expect(stream.errors).toMatchObject([{ code: 503 }]));
  expect(ends).toEqual(['token', 'error']);
});

test('streams end when the key of their token is withdrawn; those of other keys, and of none, go on', async () => {
  const trusted = new Set(['old', 'new']);
  const ends = startHub(noBlocks, (keyId) => trusted.has(keyId));
  const [old, current, nameless] = [streamOf(), streamOf(), streamOf()];
  hub?.register(old, viewOf({ ...caller, keyId: 'old' }, '*', false));
  hub?.register(current, viewOf({ ...caller, keyId: 'new' }, '*', false));
  hub?.register(nameless, viewOf(caller, '*', false));
  trusted.delete('old');
  await vi.waitFor(() => expect(old.errors).toMatchObject([{ code: 401 }]));
  expect([current.errors, nameless.errors, ends]).toEqual([[], [], ['token']]);
});

test('whatever is registered obeys the blocks, also those that came before it was', async () => {
  const blocks = {
    known: createBlockSet([{ subject: 'ann', tenant: 'acme' }]),
    ageMs: 0,
    current: async () => blocks.known,
  };
  const ends = startHub(blocks);
  const [all, acme, other] = [streamOf(), streamOf(), streamOf()];
  hub?.register(all, viewOf(caller, '*', false));
  hub?.register(acme, viewOf(caller, ['acme', 'zoo'], true));
  hub?.register(other, viewOf(caller, ['zoo'], true));
  await vi.waitFor(() => expect([all.errors, acme.errors]).toMatchObject([[{ code: 403 }], [{ code: 403 }]]));
  expect(other.errors).toEqual([]);
  blocks.known = createBlockSet([{ subject: 'ann' }]);
  await vi.waitFor(() => expect(other.errors).toMatchObject([{ code: 401 }]));
  expect(ends).toEqual(['blocked', 'blocked', 'blocked']);
});

test('a caller has 200 different filters at most on its open streams, however many streams share one', () => {
  const known = createBlockSet([]);
  startHub({ known, ageMs: 0, current: async () => known });
  const allow = (text: string, subject = 'ann'): void => hub?.assertFilterAllowed({ subject }, filtering(text).filter);
  const streams = Array.from({ length: 200 }, (_, index) => filtering(`event.seq == "${index}"`));
  for (const stream of streams) {
    allow(stream.filter?.text ?? '');
    for (const each of [stream, { ...stream }]) hub?.register(each, viewOf(caller, '*', false));
  }
  expect(() => allow('true')).toThrow('200 different filters');
  allow('event.seq == "7"');
  allow('true', 'bob');
  hub?.assertFilterAllowed(caller, undefined);
  hub?.unregister(streams[0] ?? streamOf());
  expect(() => allow('true'), 'the other stream has it still').toThrow('200 different filters');
});

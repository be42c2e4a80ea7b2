import { beforeEach, expect, test, vi } from 'vitest';
import {
  type AssignedLane,
  type DeadLetter,
  type DeadLetterRef,
  type JoinRequest,
  MAX_DEAD_LETTERS,
  type Membership,
  type ParkingResult,
} from '#core/ports/watch-groups.ts';
import { useGroupWorld, newGroup } from '#test/support/watch-groups.ts';

const ACT = { by: 'carol', reason: 'the consumer was fixed' };

const world = useGroupWorld(['acme']);
let request: JoinRequest;
let joined: Membership;
let lane: AssignedLane;

beforeEach(async () => {
  request = newGroup(['acme']);
  joined = await world.join(request);
  lane = await world.firstLane(joined.member);
});

function park(seq: bigint, of: AssignedLane = lane, event: string = `{"id":"event-${seq}"}`): Promise<ParkingResult> {
  return world.groups.park(of, {
    point: { seq, position: seq * 10n },
    tenant: 'acme',
    event,
    type: 'MODIFIED',
    attempts: 16,
    reason: 'delivered 16 times',
  });
}

async function letters(): Promise<readonly DeadLetter[]> {
  return (await world.groups.deadLetters(joined.group, 0n, 100)).letters;
}

/** All that is asked for. */
async function retries(): Promise<AssignedLane['retries']> {
  return (await world.groups.lanes([joined.member])).flatMap((each) => each.retries);
}

/** Delivers all that is asked for. */
async function deliver(member: bigint = joined.member): Promise<readonly DeadLetter[]> {
  return world.groups.deliverDeadLetters(member, await retries());
}

function refTo({ id, stream, fence }: DeadLetter, group: bigint = joined.group): readonly DeadLetterRef[] {
  return [{ group, stream, id, fence }];
}

/** The only one. */
async function parked(seq: bigint = 5n): Promise<DeadLetter> {
  await park(seq);
  const letter = (await letters()).find(({ point }) => point.seq === seq);
  if (!letter) throw new Error('nothing is parked');
  return letter;
}

async function actions(): Promise<unknown> {
  return world.sql`select deed, done_by, reason from plumbline.group_action
    where watch_group = ${String(joined.group)}::bigint order by id`;
}

test('a parked event is kept as it was, and its lane goes on behind it', async () => {
  expect(await park(5n)).toBe('Parked');
  expect(await letters()).toEqual([
    {
      id: expect.any(BigInt),
      fence: 1n,
      stream: lane.stream,
      lane: lane.lane,
      point: { seq: 5n, position: 50n },
      tenant: 'acme',
      event: '{"id":"event-5"}',
      type: 'MODIFIED',
      attempts: 16,
      reason: 'delivered 16 times',
      parkedAt: expect.any(Date),
    },
  ]);
  expect((await world.firstLane(joined.member)).confirmed).toEqual({ seq: 5n, position: 50n });
  expect((await world.groups.get(request))?.deadLetters).toBe(1);
});

test('nobody parks an event of a lane that was taken from it, nor one that was confirmed meanwhile', async () => {
  await world.groups.nack(request, [{ ...lane, point: { seq: 5n, position: 50n }, delayMs: 0 }]);
  expect(await park(5n)).toBe('Fenced');
  const held = await world.firstLane(joined.member);
  await world.groups.ack(request, [{ ...held, point: { seq: 5n, position: 50n } }]);
  expect(await park(5n, held)).toBe('Parked');
  expect(await letters()).toEqual([]);
});

test('dead letters come in pages of bounded size, with at least one each', async () => {
  const event = JSON.stringify({ text: 'x'.repeat(1_500_000) });
  for (let seq = 1n; seq <= 5n; seq += 1n) await park(seq, lane, event);
  const pages: (readonly bigint[])[] = [];
  let after = 0n;
  for (let more = true; more;) {
    const page = await world.groups.deadLetters(joined.group, after, pages.length === 0 ? 1 : 10);
    pages.push(page.letters.map(({ point }) => point.seq));
    after = page.letters.at(-1)?.id ?? after;
    ({ more } = page);
  }
  expect(pages).toEqual([[1n], [2n, 3n, 4n], [5n]]);
});

test('a retry comes with the lane, is counted when it is delivered, and its ack forgets the event', async () => {
  const letter = await parked();
  expect(await retries()).toEqual([]);
  expect(await world.groups.retryDeadLetter(joined.group, letter.id, ACT)).toBe(true);
  expect(await retries()).toEqual([{ id: letter.id, fence: 2n }]);
  const [delivered] = await deliver();
  expect(delivered).toEqual({ ...letter, attempts: 17, fence: 3n });
  expect(await retries()).toEqual([{ id: letter.id, fence: 3n }]);
  const ref = refTo(delivered!);
  expect(await world.groups.ackDeadLetters({ ...request, owner: 'stranger' }, ref)).toEqual(['Unknown']);
  expect(await world.groups.ackDeadLetters(request, ref)).toEqual(['Acked']);
  expect(await world.groups.ackDeadLetters(request, ref)).toEqual(['Duplicate']);
  expect(await letters()).toEqual([]);
  expect(await actions()).toEqual([
    { deed: `retry of event 5 of stream ${lane.stream}`, done_by: ACT.by, reason: ACT.reason },
  ]);
});

test('a refused retry stays, until it is asked for again; a late word on an earlier delivery does nothing', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const [first] = await deliver();
  expect(await world.groups.nackDeadLetters(request, refTo(first!))).toEqual(['Acked']);
  expect(await retries()).toEqual([]);
  expect(await letters()).toMatchObject([{ id: letter.id, attempts: 17 }]);
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  expect(await world.groups.nackDeadLetters(request, refTo(first!))).toEqual(['Fenced']);
  expect(await world.groups.ackDeadLetters(request, refTo(first!))).toEqual(['Fenced']);
  expect((await deliver())[0]).toMatchObject({ id: letter.id, attempts: 18 });
});

test('a retry that is asked for again while it is on its way is not delivered once more', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const [delivered] = await deliver();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  expect(await retries()).toEqual([{ id: letter.id, fence: delivered!.fence }]);
  expect(await world.groups.ackDeadLetters(request, refTo(delivered!))).toEqual(['Acked']);
});

test('after three deliveries that nobody answered a retry is over; its last one can still be acked', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const attempts: number[] = [];
  let last: DeadLetter | undefined;
  for (let turn = 1; turn <= 3; turn += 1) {
    [last] = await deliver();
    attempts.push(last!.attempts);
  }
  expect(attempts).toEqual([17, 18, 19]);
  expect(await deliver()).toEqual([]);
  expect(await retries()).toEqual([]);
  expect(await letters()).toEqual([last]);
  expect(await world.groups.ackDeadLetters(request, refTo(last!))).toEqual(['Acked']);
});

test('a retry is delivered once for each fence, to who holds its lane alone, and not while another waits for that', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const asked = await retries();
  const both = await Promise.all([
    world.groups.deliverDeadLetters(joined.member, asked),
    world.groups.deliverDeadLetters(joined.member, asked),
  ]);
  expect(both.flat()).toHaveLength(1);
  expect(await deliver(joined.member + 1n)).toEqual([]);
  await world.sql`update plumbline.group_lane set next_member = 1, hand_over_by = 'infinity'
    where watch_group = ${String(joined.group)}::bigint`;
  expect(await deliver()).toEqual([]);
});

test('retries are delivered in pages of bounded size, with at least one each', async () => {
  const event = JSON.stringify({ text: 'x'.repeat(1_500_000) });
  for (let seq = 1n; seq <= 4n; seq += 1n) await park(seq, lane, event);
  const ids = await world.sql<{ id: bigint }[]>`select id from plumbline.group_dead_letter
    where watch_group = ${String(joined.group)}::bigint`;
  for (const { id } of ids) await world.groups.retryDeadLetter(joined.group, id, ACT);
  const asked = await retries();
  const first = await world.groups.deliverDeadLetters(joined.member, asked);
  const second = await world.groups.deliverDeadLetters(joined.member, asked);
  expect([first, second].map((page) => page.map(({ point }) => point.seq))).toEqual([[1n, 2n, 3n], [4n]]);
});

test('the members of a group are told when a retry is refused or confirmed at another process', async () => {
  const stopping = new AbortController();
  const told = new Set<bigint | undefined>();
  world.groups.onChange((group) => told.add(group), stopping.signal);
  for (const answer of ['nackDeadLetters', 'ackDeadLetters'] as const) {
    const letter = await parked(answer === 'nackDeadLetters' ? 5n : 6n);
    await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
    const [delivered] = await deliver();
    await vi.waitFor(async () => {
      told.clear();
      await world.sql`select pg_notify('plumbline_watch_group', '0')`;
      await vi.waitFor(() => expect(told).toContain(0n), 200);
    }, 10_000);
    told.clear();
    expect(await world.groups[answer](request, refTo(delivered!))).toEqual(['Acked']);
    await vi.waitFor(() => expect(told).toContain(joined.group), 10_000);
  }
  stopping.abort();
});

test('a group has a most of dead letters: no event is parked beyond it, until another one is out of the way', async () => {
  await park(1n);
  await world.sql`insert into plumbline.group_dead_letter (watch_group, stream, lane, seq, position, event, type, attempts, reason)
    select watch_group, stream, lane, seq + n, position, event, type, attempts, reason
    from plumbline.group_dead_letter, generate_series(1, ${MAX_DEAD_LETTERS - 1}) n
    where watch_group = ${String(joined.group)}::bigint`;
  const confirmed = { seq: 1n, position: 10n };
  const beyond = 20_000n;
  expect(await park(beyond)).toBe('Full');
  expect((await world.firstLane(joined.member)).confirmed).toEqual(confirmed);
  // One that is there is no other.
  expect(await park(2n)).toBe('Parked');
  const [first] = await letters();
  await world.groups.skipDeadLetter(joined.group, first!.id, ACT);
  expect(await park(beyond)).toBe('Parked');
  expect((await world.groups.get(request))?.deadLetters).toBe(MAX_DEAD_LETTERS);
});

test('who does not see the tenant of a dead letter any more knows nothing of it', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  const [delivered] = await deliver();
  for (const tenants of [['other'], [], { allBut: ['acme'] }]) {
    expect(await world.groups.ackDeadLetters({ ...request, tenants }, refTo(delivered!))).toEqual(['Unknown']);
    expect(await world.groups.nackDeadLetters({ ...request, tenants }, refTo(delivered!))).toEqual(['Unknown']);
  }
  expect(await letters()).toEqual([delivered]);
  expect(await world.groups.ackDeadLetters({ ...request, tenants: { allBut: ['b'] } }, refTo(delivered!))).toEqual([
    'Acked',
  ]);
});

test('a skipped event is gone, and the reason is kept', async () => {
  const letter = await parked();
  expect(await world.groups.skipDeadLetter(joined.group, letter.id, ACT)).toBe(true);
  expect(await world.groups.skipDeadLetter(joined.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.retryDeadLetter(joined.group, letter.id, ACT)).toBe(false);
  expect(await letters()).toEqual([]);
  expect(await actions()).toEqual([
    { deed: `skip of event 5 of stream ${lane.stream}`, done_by: ACT.by, reason: ACT.reason },
  ]);
});

test('dead letters of one group cannot be reached through another', async () => {
  const letter = await parked();
  const other = await world.join(newGroup(['acme']));
  expect(await world.groups.retryDeadLetter(other.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.skipDeadLetter(other.group, letter.id, ACT)).toBe(false);
  expect(await world.groups.ackDeadLetters(request, refTo(letter, other.group))).toEqual(['Duplicate']);
  expect((await letters()).length).toBe(1);
});

test('an event that is delivered again after a seek, and parked again, is parked once', async () => {
  const letter = await parked();
  await world.groups.retryDeadLetter(joined.group, letter.id, ACT);
  await world.groups.seek(joined.group, 'earliest', ACT);
  await park(5n, await world.firstLane(joined.member));
  expect(await letters()).toEqual([{ ...letter, fence: 3n, parkedAt: expect.any(Date) }]);
  expect(await retries()).toEqual([]);
});

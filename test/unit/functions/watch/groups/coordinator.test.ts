import { expect, test, vi } from 'vitest';

import type { StreamDirectory } from '#core/ports/streams.ts';
import type { LaneMark, WatchGroups } from '#core/ports/watch-groups.ts';
import { type CoordinatorDeps, GroupCoordinator } from '#functions/watch/groups/coordinator.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';
import { fakeDirectory, settle } from '#test/unit/functions/watch/fakes.ts';

test.each(['goes away', 'is there when the process stops'])(
  'a member that %s gives its lanes back behind the marks that are on their way',
  async (how) => {
    const calls: string[] = [];
    let answer = (): void => undefined;
    const groups = {
      onChange: () => undefined,
      async mark() {
        calls.push('mark');
        await new Promise<void>((resolve) => (answer = resolve));
        calls.push('marked');
      },
      leave: async () => void calls.push('leave'),
      lanes: async () => [],
      withLanes: async () => new Set(),
    } as unknown as WatchGroups;
    const streams: StreamDirectory = fakeDirectory();
    const coordinator = new GroupCoordinator({
      groups,
      streams,
      onError: () => undefined,
    } as unknown as CoordinatorDeps);
    coordinator.add(sessionWithOneMark(1n));
    const noted = coordinator.noteDeliveries();
    await settle();
    coordinator.keeper.ended(1n);
    const stopped = how === 'goes away' ? undefined : coordinator.stop();
    await settle();
    expect(calls).toEqual(['mark']);
    answer();
    await Promise.all([noted, stopped]);
    await settle();
    expect(calls).toEqual(['mark', 'marked', 'leave']);
    await coordinator.stop();
  },
);

test('members that end when the process stops leave together, with what each had delivered', async () => {
  const left: (readonly [members: readonly bigint[], marks: number])[] = [];
  const groups = {
    onChange: () => undefined,
    mark: async () => undefined,
    leave: async (members: readonly bigint[], marks: readonly LaneMark[]) => void left.push([members, marks.length]),
    lanes: async () => [],
    withLanes: async () => new Set(),
  } as unknown as WatchGroups;
  const coordinator = new GroupCoordinator({
    groups,
    streams: fakeDirectory(),
    onError: () => undefined,
  } as unknown as CoordinatorDeps);
  const members = Array.from({ length: 100 }, (_, index) => BigInt(index + 1));
  for (const member of members) coordinator.add(sessionWithOneMark(member));
  for (const member of members) coordinator.keeper.ended(member);
  await coordinator.stop();
  expect(left).toEqual([[members, 100]]);
});

test('a group that cannot be settled holds up no other, and is tried again', async () => {
  let failures = 1;
  const settled: bigint[] = [];
  const directory = fakeDirectory();
  const groups = {
    onChange: () => undefined,
    lanes: async () => [],
    withLanes: async () => new Set(),
    renew: async (members: readonly bigint[]) => members,
    unsettled: async (asked: readonly bigint[]) => asked.filter((group) => !settled.includes(group)),
    async settle(group: bigint) {
      if (group === 1n && failures-- > 0) throw new Error('too slow');
      settled.push(group);
    },
  } as unknown as WatchGroups;
  const errors: unknown[] = [];
  const coordinator = new GroupCoordinator({
    groups,
    streams: directory,
    onError: (error: unknown) => errors.push(error),
  } as unknown as CoordinatorDeps);
  for (const member of [1n, 2n, 3n]) coordinator.add(sessionWithOneMark(member, member));
  directory.tell();
  await settle();
  expect([settled, errors]).toEqual([[2n, 3n], [new Error('too slow')]]);
  await vi.waitFor(() => expect(settled).toEqual([2n, 3n, 1n]), 5_000);
  await coordinator.stop();
});

function sessionWithOneMark(member: bigint, group: bigint = 1n): GroupSession {
  const marks: LaneMark[] = [{ group, stream: 1n, lane: 0, fence: 1n, delivered: 1n, confirmed: undefined }];
  return {
    membership: { group, member, isNew: true, droppedAt: undefined },
    lanes: {
      marks: { take: () => marks.splice(0).map((mark) => ({ lane: undefined, mark })) },
      takeRested: () => [],
      awaited: () => [],
      drop: () => [],
      needsRange: () => false,
    },
    take: () => undefined,
    tick: () => undefined,
    renewed: () => undefined,
  } as unknown as GroupSession;
}

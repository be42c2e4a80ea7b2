import { expect, test } from 'vitest';

import type { StreamDirectory } from '#core/ports/streams.ts';
import type { LaneMark, WatchGroups } from '#core/ports/watch-groups.ts';
import { type CoordinatorDeps, GroupCoordinator } from '#functions/watch/groups/coordinator.ts';
import type { GroupSession } from '#functions/watch/groups/session.ts';
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
    } as unknown as WatchGroups;
    const streams: StreamDirectory = fakeDirectory();
    const coordinator = new GroupCoordinator({
      groups,
      streams,
      onError: () => undefined,
    } as unknown as CoordinatorDeps);
    coordinator.add(sessionWithOneMark());
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

function sessionWithOneMark(): GroupSession {
  const marks: LaneMark[] = [{ group: 1n, stream: 1n, lane: 0, fence: 1n, delivered: 1n, confirmed: undefined }];
  return {
    membership: { group: 1n, member: 1n, isNew: true, droppedAt: undefined },
    lanes: {
      takeMarks: () => marks.splice(0).map((mark) => ({ lane: undefined, mark })),
      takeRested: () => [],
      awaited: () => [],
      drop: () => [],
      needsRange: () => false,
    },
    take: () => undefined,
    tick: () => undefined,
  } as unknown as GroupSession;
}

import { expect, test, vi } from 'vitest';

import { Renewals } from '#functions/watch/groups/renewals.ts';
import { GroupSessions } from '#functions/watch/groups/sessions.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';

const NOW_MS = 10_000;

test('a renewal that failed is made again before the next one is due', async () => {
  let calls = 0;
  const renewed = vi.fn<(leaseEndsAtMs: number) => void>();
  const renewals = renewalsOf(member(1n, { renewed }), async (members) => {
    calls += 1;
    if (calls === 1) throw new Error('a failover');
    return members;
  });
  await vi.waitFor(
    () => {
      renewals.tick(NOW_MS);
      expect(renewed).toHaveBeenCalledOnce();
    },
    { timeout: 10_000 },
  );
  expect(calls).toBe(2);
});

test('a member that the database does not know any more is ended: its lease is lost, or its group was deleted', async () => {
  const ended: string[] = [];
  const end = (error: Error): void => void ended.push(error.message);
  const lost = renewalsOf(member(1n, { end }), async () => []);
  const deleted = renewalsOf(member(2n, { end }), async () => [], [{ group: 2n, by: 'ann', reason: 'not needed' }]);
  for (const renewals of [lost, deleted]) renewals.tick(NOW_MS);
  await vi.waitFor(() => expect(ended).toHaveLength(2));
  expect(ended[0]).toContain('kept alive');
  expect(ended[1]).toContain('not needed');
});

function renewalsOf(
  session: GroupSession,
  renew: (members: readonly bigint[]) => Promise<readonly bigint[]>,
  deletions: readonly { readonly group: bigint; readonly by: string; readonly reason: string }[] = [],
): Renewals {
  const sessions = new GroupSessions();
  sessions.add(session);
  const groups = { renew, deletions: async () => deletions };
  return new Renewals({ groups, sessions, onError: () => undefined });
}

function member(id: bigint, session: Partial<GroupSession>): GroupSession {
  return { membership: { member: id, group: id, isNew: true, droppedAt: undefined }, ...session } as GroupSession;
}

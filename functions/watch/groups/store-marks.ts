/** What the members of this process tell the database of their lanes, in one statement. */

import type { WatchGroups } from '#core/ports/watch-groups.ts';
import type { GroupSession } from '#functions/watch/groups/member/session.ts';

/** @param ofMoves also where lanes moved by themselves: over what is of no concern to their group. */
export async function storeMarks(
  groups: WatchGroups,
  sessions: readonly GroupSession[],
  ofMoves: boolean,
): Promise<void> {
  const members = sessions.map(({ lanes: { marks } }) => ({ marks, taken: marks.take(ofMoves) }));
  const all = members.flatMap(({ taken }) => taken);
  if (all.length === 0) return;
  try {
    await groups.mark(all.map(({ mark }) => mark));
  } catch (error) {
    for (const { marks, taken } of members) for (const mark of taken) marks.restore(mark);
    throw error;
  }
}

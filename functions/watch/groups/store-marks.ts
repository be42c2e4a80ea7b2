/** What the members of this process tell the database of their lanes, in one statement. */

import type { WatchGroups } from '#core/ports/watch-groups.ts';
import type { GroupSession } from '#functions/watch/groups/session.ts';

/** @param ofMoves also where lanes moved by themselves: over what is of no concern to their group. */
export async function storeMarks(
  groups: WatchGroups,
  sessions: readonly GroupSession[],
  ofMoves: boolean,
): Promise<void> {
  const taken = sessions.map(({ lanes }) => ({ lanes, marks: lanes.takeMarks(ofMoves) }));
  const all = taken.flatMap(({ marks }) => marks);
  if (all.length === 0) return;
  try {
    await groups.mark(all.map(({ mark }) => mark));
  } catch (error) {
    for (const { lanes, marks } of taken) for (const mark of marks) lanes.restore(mark);
    throw error;
  }
}

import { expect, test } from 'vitest';

import { ORIGIN } from '#core/ports/event-log.ts';
import { Lane } from '#functions/watch/groups/member/lane.ts';
import { pass } from '#functions/watch/groups/member/pass.ts';
import { createSelection } from '#functions/watch/selection.ts';
import { eventOf } from '#test/unit/functions/watch/fakes.ts';
import { assigned, laneOfSeq, STREAM } from '#test/unit/functions/watch/groups/member.ts';

test('an event that was neither delivered nor kept for later is not passed over', () => {
  const number = laneOfSeq(1);
  const lane = new Lane(assigned(number), { window: 2, maxAttempts: 3 }, 0);
  const deps = { selection: createSelection({}), isFull: () => false, deliver: () => undefined };
  const run = { after: 0n, events: [eventOf(STREAM, 1)] };
  expect(() => pass(deps, new Map([[number, lane]]), run, 0)).toThrow('1.');
  expect(lane.next).toEqual(ORIGIN);
});

import { describe, expect, test } from 'vitest';

import { useGroups } from '#test/http/watch-groups/world.ts';
import { expectFailure } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function parameters(open: OpenTarget): void {
  const world = useGroups(open);

  describe('parameters of a member', () => {
    test.each([
      ['group=', '"group" is empty'],
      ['group=a&group=b', '"group" is given 2 times'],
      ['group=A', '"group" is "A"'],
      ['group=-a', '"group" is "-a"'],
      ['group=a.b', '"group" is "a.b"'],
      [`group=${'a'.repeat(64)}`, '"group" is "aaa'],
      ['group=a&from=earliest', '"from" excludes "group"'],
      ['group=a&from=now', '"from" excludes "group"'],
      ['group=a&initial=true', '"initial" excludes "group"'],
      ['group=a&initial=false', '"initial" excludes "group"'],
      ['group=a&start=later', '"start" is "later"; allowed is "earliest" or "now"'],
      ['group=a&window=0', '"window" is "0"; allowed is an integer from 1 to 1024'],
      ['group=a&window=1025', 'from 1 to 1024'],
      ['group=a&window=x', 'from 1 to 1024'],
      ['group=a&ackWaitMs=999', 'an integer from 1000 to 3600000'],
      ['group=a&ackWaitMs=3600001', 'an integer from 1000 to 3600000'],
      ['group=a&maxAttempts=0', 'an integer from 1 to 1000'],
      ['group=a&maxAttempts=1001', 'an integer from 1 to 1000'],
      ['group=a&Window=1', '"Window" is not known'],
      ['start=now', '"start" is of groups'],
      ['window=1', '"window" is of groups'],
      ['ackWaitMs=1000', '"ackWaitMs" is of groups'],
      ['maxAttempts=1', '"maxAttempts" is of groups'],
    ])('%s is refused', async (query, words) => {
      const answer = await world.member.get(`/watch/v1/events?${query}`);
      expect(answer.status).toBe(400);
      expectFailure(answer.body, 400, 'BadRequest');
      expect(answer.body.message).toContain(words);
    });

    test('at their bounds are taken', async () => {
      const name = 'a'.repeat(63);
      await world.join(name, { window: '1024', ackWaitMs: '3600000', maxAttempts: '1000', start: 'now' });
      await world.join(name, { window: '1', ackWaitMs: '1000', maxAttempts: '1' });
    });

    test('name tenants that the member sees and that are there', async () => {
      const { status } = await world.refused({ group: 'a', tenants: 'somebody-elses' });
      expect(status).toBe(404);
      const wide = { ...world.owner, tenants: '*' } as const;
      expect((await world.refused({ group: 'a', tenants: 'never-made' }, wide)).status).toBe(404);
    });

    test('do not include what a browser remembers: it is told nothing but what was not acked', async () => {
      const answer = await fetch(`${world.target.baseUrl}/watch/v1/events?group=browser`, {
        headers: {
          Authorization: `Bearer ${await world.target.token(world.owner)}`,
          'Last-Event-ID': 'whatever it was sent last',
        },
      });
      expect(answer.status).toBe(200);
      await answer.body?.cancel();
    });
  });
}

import { describe, expect, test } from 'vitest';

import { uniqueName } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { deliveriesOf, isOf, useGroups } from '#test/http/watch-groups/world.ts';
import type { SseClient } from '#test/support/sse-client.ts';

export function parking(open: OpenTarget): void {
  const world = useGroups(open);

  describe('an event that was delivered too often', () => {
    test('is parked, and its lane goes on', async () => {
      const client = await world.join(uniqueName('parking'), { start: 'now', maxAttempts: '2' });
      const uid = await world.write(uniqueName('w'), 3);
      await refuse(client, uid, 2);
      await client.waitFor(isOf(uid, 2));
      expect(deliveriesOf(client, uid).filter((line) => line.startsWith('0'))).toEqual(['0', '0 again 2']);
      // The others were refused beside it, and have their last attempt behind them or before them.
      const rest = client.events.findLast(isOf(uid, 2));
      expect(await world.ack(rest?.id)).toMatch(/Acked|Fenced/);
    });

    test('is parked after one attempt if one is allowed', async () => {
      const client = await world.join(uniqueName('parking'), { start: 'now', maxAttempts: '1', window: '1' });
      const uid = await world.write(uniqueName('w'), 2);
      await refuse(client, uid, 1);
      const next = await client.waitFor(isOf(uid, 1));
      expect(next.data.attempt).toBe(1);
      expect(await world.ack(next.id)).toBe('Acked');
      expect(deliveriesOf(client, uid)).toEqual(['0', '1']);
    });
  });

  /** Refuses an object's first event so often. */
  async function refuse(client: SseClient, uid: string, times: number): Promise<void> {
    for (let attempt = 1; attempt <= times; attempt += 1) {
      const head = await client.waitFor(({ data }) => isOf(uid, 0)({ data } as never) && data.attempt === attempt);
      expect(await world.nack(head.id)).toBe('Acked');
    }
  }
}

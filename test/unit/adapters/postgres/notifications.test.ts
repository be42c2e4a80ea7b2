import { expect, test, vi } from 'vitest';
import type { Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';

test.each(['after it listens', 'before it listens'])('who stops %s listens no more', async (moment) => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const stopping = new AbortController();
  const unlisten = vi.fn(async () => undefined);
  const sql = { listen: () => promise } as unknown as Sql;
  onNotification(sql, { channel: 'news', floorMs: 60_000 }, () => undefined, stopping.signal);
  if (moment === 'before it listens') stopping.abort();
  resolve({ unlisten });
  await promise;
  expect(unlisten).toHaveBeenCalledTimes(stopping.signal.aborted ? 1 : 0);
  stopping.abort();
  expect(unlisten).toHaveBeenCalledOnce();
});

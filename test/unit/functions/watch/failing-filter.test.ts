import { expect, test } from 'vitest';
import type { ResourceStore } from '#core/ports/resources.ts';
import { fakeWatch } from '#test/unit/functions/watch/fake-watch.ts';
import { fakeDirectory, fakeLog, settle } from '#test/unit/functions/watch/fakes.ts';

/** Cannot be evaluated over the fourth event. */
const FILTER = encodeURIComponent('event.uid != "uid-1-4" || event.data.spec.size == 1');

test('a watch that is live is sent what matches before the event that its filter fails on, and then the error', async () => {
  const { log, ask } = world();
  const answer = await ask('from=now');
  log.fill(1n, 5);
  log.tell(1n);
  expect(namesIn(await answer.text())).toEqual(['READY', 'ADDED 1-1', 'ADDED 1-2', 'ADDED 1-3', 'ERROR 1:3']);
});

test('so is one that reads what it has missed', async () => {
  const { log, ask } = world();
  log.fill(1n, 5);
  expect(namesIn(await (await ask('from=earliest')).text())).toEqual([
    'READY',
    'ADDED 1-1',
    'ADDED 1-2',
    'ADDED 1-3',
    'ERROR 1:3',
  ]);
});

function world() {
  const log = fakeLog();
  const { app } = fakeWatch({ log, streams: fakeDirectory(1), store: {} as ResourceStore });
  return {
    log,
    async ask(query: string): Promise<Response> {
      const answer = await app.request(`/watch/v1/events?${query}&filter=${FILTER}`);
      await settle();
      return answer;
    },
  };
}

/** Events by their ids, errors with the cursor that they end at. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n/g)].map(([, event = '', data = '']) => {
    const { id, details } = JSON.parse(data) as { id?: string; details?: { cursor: string } };
    return [event, id ?? details?.cursor].filter((word) => word !== undefined).join(' ');
  });
}

/** All tails of this process. Nothing is fetched while there are none. */

import { createCourseKeeper } from '#adapters/kafka/reading/course-keeper.ts';
import type { SessionDeps } from '#adapters/kafka/client/session.ts';
import { createTakeAnswer } from '#adapters/kafka/reading/tail-answers.ts';
import { createTailPlaces } from '#adapters/kafka/reading/tail-places.ts';
import { TailReader } from '#adapters/kafka/reading/tail-reader.ts';
import type { StreamEvent } from '#core/event.ts';
import type { EventLog, LogPoint } from '#core/ports/event-log.ts';
import type { LogIndex } from '#core/ports/log-index.ts';

export interface TailingDeps extends SessionDeps {
  readonly index: LogIndex;
  /** Something in a topic that is no event of its stream, or that keeps it from being read. */
  readonly onOddity: (topic: string, what: string) => void;
}

export interface Tailing {
  readonly tail: EventLog['tail'];
  /** Ends all of them. */
  close(): Promise<void>;
}

export function createTailing(deps: TailingDeps): Tailing {
  const { index, onOddity } = deps;
  const readers = new Set<TailReader>();
  const takeAnswer = createTakeAnswer({
    index,
    onOddity,
    session: () => keeper.session,
    onDoubt: (topic) => keeper.doubt(topic),
    onLost: () => places.look('all'),
    onMended: (reader) => keeper.offer(reader),
  });
  const keeper = createCourseKeeper({ ...deps, readers, takeAnswer, onUnknownTopic: () => places.look('all') });
  const places = createTailPlaces({
    index,
    readers,
    onMoving: (reader) => keeper.withdraw(reader),
    onPlaced: (reader) => keeper.offer(reader),
  });
  let listening: AbortController | undefined;
  let isClosed = false;

  return {
    tail,
    async close() {
      isClosed = true;
      for (const reader of readers) remove(reader);
      await keeper.close();
    },
  };

  async function* tail(
    stream: bigint,
    after: LogPoint,
    signal: AbortSignal,
  ): AsyncGenerator<readonly StreamEvent[], void, void> {
    if (signal.aborted || isClosed) return;
    const reader = new TailReader(stream, after);
    const end = (): void => remove(reader);
    add(reader);
    signal.addEventListener('abort', end, { once: true });
    try {
      for (;;) {
        const coming = reader.next();
        keeper.offer(reader);
        const events = await coming;
        if (events === 'closed') return;
        yield events;
      }
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  }

  function add(reader: TailReader): void {
    readers.add(reader);
    places.look('new');
    if (listening) return;
    listening = new AbortController();
    index.onChange(() => {
      keeper.hurry();
      places.look('all');
    }, listening.signal);
  }

  function remove(reader: TailReader): void {
    keeper.withdraw(reader);
    readers.delete(reader);
    reader.close();
    if (readers.size > 0) return;
    listening?.abort();
    listening = undefined;
  }
}

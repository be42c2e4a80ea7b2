import { expect, test } from 'vitest';
import { pump } from '#adapters/workers/pump.ts';

const bytes = new TextEncoder().encode('bytes');

function pumped(): {
  readonly source: WritableStreamDefaultWriter<Uint8Array>;
  readonly sink: ReadableStreamDefaultReader<Uint8Array>;
  readonly running: ReturnType<typeof pump>;
} {
  const [up, down] = [0, 0].map(() => new TransformStream<Uint8Array, Uint8Array>());
  const running = pump(up!.readable, down!.writable);
  return { source: up!.writable.getWriter(), sink: down!.readable.getReader(), running };
}

test('what is read is written, and an end is passed on', async () => {
  const { source, sink, running } = pumped();
  void source.write(bytes);
  expect(await sink.read()).toEqual({ done: false, value: bytes });
  void source.close();
  expect(await sink.read()).toEqual({ done: true, value: undefined });
  await running.ended;
});

test('a break is passed on', async () => {
  const { source, sink, running } = pumped();
  void source.abort(new Error('reset'));
  await expect(sink.read()).rejects.toThrow('reset');
  await running.ended;
});

test('one that is stopped lets go of both', async () => {
  const { source, running } = pumped();
  const closed = source.closed.catch(() => undefined);
  running.stop();
  await running.ended;
  await closed;
});

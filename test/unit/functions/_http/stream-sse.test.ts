import { expect, test, vi } from 'vitest';
import type { SseBytes, SseSink } from '#core/ports/sse.ts';
import { type StreamEnv, streamSse } from '#http/stream-sse.ts';

const HEADERS = { 'Content-Type': 'text/event-stream' };

test('what was written before the end is read, and then the stream ends', async () => {
  const { sink, answer } = open();
  sink.write(bytesOf('one'));
  sink.write(bytesOf('two'));
  sink.end();
  sink.write(bytesOf('three'));
  expect(await answer.text()).toBe('onetwo');
});

test('a reader that waits gets what is written, each write as one chunk, and then the end', async () => {
  const { sink, reader } = openReader();
  const first = reader.read();
  sink.write(bytesOf('one'));
  expect(textOf(await first)).toBe('one');
  const second = reader.read();
  sink.write(bytesOf('two'));
  sink.write(bytesOf('three'));
  expect(textOf(await second)).toBe('two');
  expect(textOf(await reader.read())).toBe('three');
  const last = reader.read();
  sink.end();
  expect((await last).done).toBe(true);
});

test('bytes are buffered until the client pulls them, and it is told when all are taken', async () => {
  const { sink, reader, events } = openReader();
  sink.write(bytesOf('one'));
  sink.write(bytesOf('three'));
  expect(sink.bufferedBytes).toBe(8);
  await reader.read();
  expect(sink.bufferedBytes).toBe(5);
  expect(events.onDrain).not.toHaveBeenCalled();
  await reader.read();
  expect(sink.bufferedBytes).toBe(0);
  await Promise.resolve();
  expect(events.onDrain).toHaveBeenCalledOnce();
});

test('the close is told once: of a client that goes, and of an end', async () => {
  const gone = openReader();
  await gone.reader.cancel();
  gone.sink.write(bytesOf('late'));
  gone.sink.end();
  await Promise.resolve();
  expect(gone.events.onClose).toHaveBeenCalledOnce();
  expect(gone.sink.bufferedBytes).toBe(0);

  const ended = openReader();
  ended.sink.end();
  await expect(ended.reader.read()).resolves.toMatchObject({ done: true });
  expect(ended.events.onClose).toHaveBeenCalledOnce();
});

test('a client that the runtime tells to be gone is gone, though nothing was sent', async () => {
  const client = new AbortController();
  const { events } = open({ signal: client.signal });
  client.abort();
  await Promise.resolve();
  expect(events.onClose).toHaveBeenCalledOnce();
});

test('a client that was gone before its stream was opened is gone', async () => {
  const { events, sink } = open({ signal: AbortSignal.abort() });
  sink.write(bytesOf('one'));
  await Promise.resolve();
  expect(events.onClose).toHaveBeenCalledOnce();
  expect(sink.bufferedBytes).toBe(0);
});

test('a stream that is destroyed breaks, with whatever was not sent', async () => {
  const { sink, reader, events } = openReader();
  sink.write(bytesOf('one'));
  sink.destroy();
  await expect(reader.read()).rejects.toThrow('did not read was cut off');
  expect(events.onClose).toHaveBeenCalledOnce();
});

function open(env?: StreamEnv): {
  sink: SseSink;
  answer: Response;
  events: { onDrain: () => void; onClose: () => void };
} {
  const events = { onDrain: vi.fn<() => void>(), onClose: vi.fn<() => void>() };
  return { ...streamSse.open(env, HEADERS, events), events };
}

function openReader(): ReturnType<typeof open> & { reader: ReadableStreamDefaultReader<Uint8Array> } {
  const opened = open();
  if (!opened.answer.body) throw new Error('the answer has no body');
  return { ...opened, reader: opened.answer.body.getReader() };
}

function bytesOf(text: string): SseBytes {
  const plain = new TextEncoder().encode(text);
  return { plain, chunked: plain };
}

function textOf({ value }: { readonly value?: Uint8Array | undefined }): string {
  return new TextDecoder().decode(value);
}

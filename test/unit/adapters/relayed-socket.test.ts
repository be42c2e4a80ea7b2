import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { type Line, RelayedSocket } from '#adapters/workers/relayed-socket.ts';

/** A line whose other end answers each chunk with the same bytes, and notes that it was closed. */
function echo(): Line & { closed: number } {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  return {
    readable,
    writable,
    closed: 0,
    close() {
      this.closed += 1;
    },
  };
}

describe('a relayed socket', () => {
  test('carries what was written before it was open, and tells when it is', async () => {
    const { promise, resolve } = Promise.withResolvers<Line>();
    const connected = Promise.withResolvers<void>();
    const socket = new RelayedSocket(() => promise, connected.resolve);
    socket.write('early');
    resolve(echo());
    await connected.promise;
    expect(String((await once(socket, 'data'))[0])).toBe('early');
    socket.destroy();
  });

  test('is destroyed when there is no connection, with its error', async () => {
    let isConnected = false;
    const socket = new RelayedSocket(
      () => Promise.reject(new Error('refused')),
      () => (isConnected = true),
    );
    const [error] = await once(socket, 'error');
    expect([error.message, socket.destroyed, isConnected]).toEqual(['refused', true, false]);
  });

  test('that is given up closes its line, also when that comes only then', async () => {
    const open = echo();
    const connected = Promise.withResolvers<void>();
    const one = new RelayedSocket(async () => open, connected.resolve);
    await connected.promise;
    one.destroy();
    await once(one, 'close');
    expect(open.closed).toBe(1);

    const late = echo();
    const { promise, resolve } = Promise.withResolvers<Line>();
    let isConnected = false;
    const other = new RelayedSocket(
      () => promise,
      () => (isConnected = true),
    );
    other.destroy();
    resolve(late);
    await once(other, 'close');
    expect([late.closed, isConnected]).toEqual([1, false]);
  });

  test('ends when the line does', async () => {
    const line = echo();
    const socket = new RelayedSocket(
      async () => ({ ...line, readable: new ReadableStream({ start: (controller) => controller.close() }) }),
      () => undefined,
    );
    socket.resume();
    await once(socket, 'end');
  });
});

/** A watcher that reads at a pace, or stops reading: what it has not read waits in the network, and then in the server. */

import { createParser } from 'eventsource-parser';

export interface PacedReader {
  readonly seqs: readonly bigint[];
  readonly bytes: number;
  readonly lastEventId: string;
  /** Settles when the stream has ended, or its connection broke. Never rejects. */
  readonly ended: Promise<void>;
  readonly isEnded: boolean;
  /** Reads no more until `setRate`. */
  pause(): void;
  /** Bytes per second; Infinity for as fast as it can. */
  setRate(bytesPerSecond: number): void;
  /** Resolves when it has this many events. @throws when the stream ends before. */
  untilCount(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface PacedReaderOptions {
  readonly url: string;
  readonly token: string;
  readonly lastEventId?: string;
}

export async function openPacedReader({ url, token, lastEventId = '' }: PacedReaderOptions): Promise<PacedReader> {
  const aborter = new AbortController();
  const response = await fetch(url, {
    headers: { Authorization: `Bearer ${token}`, 'Last-Event-ID': lastEventId },
    signal: aborter.signal,
  });
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  const reader = response.body.getReader();
  const seqs: bigint[] = [];
  let lastId = lastEventId;
  let bytes = 0;
  let rate = Infinity;
  let isEnded = false;
  let wake = (): void => undefined;
  const parser = createParser({
    onEvent({ event = '', id, data }) {
      if (id !== undefined && id !== '') lastId = id;
      if (event === 'ADDED' || event === 'MODIFIED' || event === 'DELETED') {
        seqs.push(BigInt(/"seq":"(\d+)"/.exec(data)?.[1] ?? 0));
      }
    },
  });
  const ended = readAll();

  return {
    seqs,
    ended,
    get bytes() {
      return bytes;
    },
    get lastEventId() {
      return lastId;
    },
    get isEnded() {
      return isEnded;
    },
    pause: () => (rate = 0),
    setRate(bytesPerSecond) {
      rate = bytesPerSecond;
      wake();
    },
    async untilCount(count) {
      while (seqs.length < count) {
        if (isEnded) throw new Error(`the stream ended with ${seqs.length} of ${count} events`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async close() {
      aborter.abort();
      rate = Infinity;
      wake();
      await ended;
    },
  };

  async function readAll(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        while (rate === 0) await new Promise<void>((resolve) => (wake = resolve));
        const { done, value } = await reader.read();
        if (done) break;
        bytes += value.byteLength;
        parser.feed(decoder.decode(value, { stream: true }));
        if (rate > 0 && rate < Infinity) {
          await new Promise((resolve) => setTimeout(resolve, (value.byteLength / rate) * 1000));
        }
      }
    } catch {
      // A connection that breaks is an end too.
    }
    isEnded = true;
  }
}

import { createRequire } from 'node:module';

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { fixKafkajs } from '#adapters/kafka/fixes/kafkajs-fixes.ts';

const require = createRequire(import.meta.url);
const RequestQueue = require('kafkajs/src/network/requestQueue');
const metadata = require('kafkajs/src/protocol/requests/metadata');

beforeAll(() => fixKafkajs());
afterEach(() => void vi.useRealTimers());

describe('the fixes of kafkajs', () => {
  it.each(['2.2.3', '2.2.5', '3.0.0'])('are refused for version %s, with what to do', (version) => {
    expect(() => fixKafkajs(version)).toThrow(
      `kafkajs ${version} is installed, but its fixes are for 2.2.4; install that one`,
    );
  });

  it('are those of the version that is installed, and once is enough', () => {
    expect(() => fixKafkajs()).not.toThrow();
  });
});

describe('the queue of a connection', () => {
  it('has no timer while nothing waits', () => {
    vi.useFakeTimers();
    queue({}).checkPendingRequests();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('looks again soon while it is full, and when the brokers throttle not before they allow', () => {
    vi.useFakeTimers();
    const sent: number[] = [];
    const full = queue({ maxInFlightRequests: 1 });
    for (const id of [1, 2]) full.push(request(id, () => sent.push(id)));
    expect(sent).toEqual([1]);
    full.inflight.clear();
    vi.advanceTimersByTime(10);
    expect(sent).toEqual([1, 2]);

    const throttled = queue({});
    throttled.maybeThrottle(300);
    throttled.push(request(3, () => sent.push(3)));
    vi.advanceTimersByTime(299);
    expect(sent).toEqual([1, 2]);
    vi.advanceTimersByTime(2);
    expect(sent).toEqual([1, 2, 3]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the metadata of a client that knows of no topic yet', () => {
  it.each([1, 3, 4, 6])('are asked for without any topic, in version %d', async (version) => {
    const allowAutoTopicCreation = false;
    const { request: none } = metadata.protocol({ version })({ topics: [], allowAutoTopicCreation });
    expect([...(await none.encode()).buffer]).toEqual(version < 4 ? [0, 0, 0, 0] : [0, 0, 0, 0, 0]);
    const { request: one } = metadata.protocol({ version })({ topics: ['a'], allowAutoTopicCreation });
    expect([...(await one.encode()).buffer].slice(0, 7)).toEqual([0, 0, 0, 1, 0, 1, 97]);
  });
});

interface Queue {
  readonly inflight: Map<number, unknown>;
  checkPendingRequests(): void;
  maybeThrottle(milliseconds: number): void;
  push(request: object): void;
}

function queue(options: object): Queue {
  const logger = { debug: () => undefined };
  return new RequestQueue({ requestTimeout: 1_000, clientId: 'c', broker: 'b', logger, ...options });
}

function request(correlationId: number, sendRequest: () => void): object {
  const entry = { apiKey: 0, apiName: 'Produce', apiVersion: 7, correlationId, resolve: () => 0, reject: () => 0 };
  return { entry, expectResponse: true, sendRequest };
}

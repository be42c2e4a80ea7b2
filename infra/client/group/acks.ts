/**
 * Confirmations, many in one call: of each lane only the last, since it covers those before it. One call at a time; what
 * comes meanwhile goes with the next. A call that fails is repeated until it is answered: a confirmation that comes twice
 * does nothing.
 */

import { createBackoff, type RetryOptions } from '#infra/client/backoff.ts';
import type { Caller } from '#infra/client/caller.ts';
import { callJson } from '#infra/client/call-json.ts';
import { isRetried, StatusError } from '#infra/client/errors.ts';
import type { LaneFence, LaneFrame } from '#infra/client/group/delivery.ts';
import type { StreamOptions } from '#infra/client/stream.ts';
import { pause } from '#loop/pause.ts';

export interface AckOptions {
  readonly caller: Caller;
  readonly retry?: RetryOptions | undefined;
  readonly onRetry?: StreamOptions['onRetry'];
  /** The server has refused a confirmation: the lane has begun anew since. */
  readonly onLost: (lane: LaneFence) => void;
  /** The server refuses all calls, for good. Nothing is confirmed any more. */
  readonly onFailure: (error: unknown) => void;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

export interface Acks {
  ack(frame: LaneFrame): void;
  /** Delivers it again, and what is behind it on its lane, after this time. */
  nack(frame: LaneFrame, delayMs: number): void;
  /** Resolves when all is answered, or given up. */
  flush(): Promise<void>;
}

interface Nack {
  readonly frame: LaneFrame;
  readonly delayMs: number;
}

interface AcksAnswer {
  readonly results: readonly { readonly status: 'Acked' | 'Duplicate' | 'Fenced' | 'Unknown' }[];
}

/** Long enough for lanes that finish together to share a call. */
const GATHER_MS = 5;
/** A call takes as many, acks and nacks together. */
const MAX_TOKENS = 1_000;
/** Once so many wait, they go at once. */
const ENOUGH = 100;
const CALL_TIMEOUT_MS = 10_000;

export function createAcks({ caller, retry, onRetry, onLost, onFailure, signal }: AckOptions): Acks {
  const acks = new Map<string, LaneFrame>();
  const nacks = new Map<string, Nack>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending: Promise<void> | undefined;
  let isOver = false;

  return {
    ack(frame) {
      const key = frame.isDeadLetter ? frame.token : frame.lane;
      acks.set(key, frame);
      schedule();
    },
    nack(frame, delayMs) {
      nacks.set(frame.token, { frame, delayMs });
      schedule();
    },
    async flush() {
      while (!isOver && (sending || acks.size + nacks.size > 0)) await (sending ?? begin());
    },
  };

  function schedule(): void {
    if (sending || isOver) return;
    if (acks.size + nacks.size >= ENOUGH) void begin();
    else timer ??= setTimeout(() => void begin(), GATHER_MS);
  }

  async function begin(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (acks.size + nacks.size === 0) return;
    sending = sendAll();
    await sending;
  }

  async function sendAll(): Promise<void> {
    while (!isOver && acks.size + nacks.size > 0) {
      const acked = takeFrom(acks, MAX_TOKENS);
      const nacked = takeFrom(nacks, MAX_TOKENS - acked.length);
      try {
        const results = await repeat(() => post(acked, nacked));
        for (const [index, frame] of [...acked, ...nacked.map(({ frame }) => frame)].entries()) {
          const result = results[index];
          if (!frame.isDeadLetter && (result === 'Fenced' || result === 'Unknown')) onLost(frame);
        }
      } catch (error) {
        isOver = true;
        if (!signal.aborted) onFailure(error);
      }
    }
    // In the same breath as the look at what waits: what comes next begins anew.
    sending = undefined;
  }

  async function repeat<T>(call: () => Promise<T>): Promise<T> {
    const backoff = createBackoff(retry);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (signal.aborted || !isRetried(error)) throw error;
        const delayMs = backoff.next(error instanceof StatusError ? error.retryAfterMs : 0);
        onRetry?.(error, delayMs);
        await pause(delayMs, signal);
      }
    }
  }

  async function post(acked: readonly LaneFrame[], nacked: readonly Nack[]): Promise<readonly string[]> {
    const body = {
      acks: acked.map(({ token }) => token),
      nacks: nacked.map(({ frame, delayMs }) => ({ token: frame.token, delayMs })),
    };
    try {
      const { answer } = await callJson(caller, '/watch/v1/acks', { body, signal, timeoutMs: CALL_TIMEOUT_MS });
      return (answer as AcksAnswer).results.map(({ status }) => status);
    } catch (error) {
      // All of them at once.
      const isAll = error instanceof StatusError && (error.code === 409 || error.code === 404);
      if (!isAll) throw error;
      return [...acked, ...nacked].map(() => (error.code === 409 ? 'Fenced' : 'Unknown'));
    }
  }
}

function takeFrom<Value>(map: Map<string, Value>, limit: number): Value[] {
  const taken = [...map].slice(0, limit);
  for (const [key] of taken) map.delete(key);
  return taken.map(([, value]) => value);
}

/** A client of server-sent events over fetch: parsed events as they come, waits with a deadline, and resume by the last id. */

import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { createChanges } from '#test/support/changes.ts';

export interface SseEvent {
  /** `message` when the frame names none. */
  readonly event: string;
  /** Of this frame: undefined without an `id:` line, empty when the frame makes clients forget their id. */
  readonly id: string | undefined;
  /** The parsed JSON; the text itself when it is none. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  readonly data: any;
}

export interface SseOptions {
  /** Bearer token. */
  readonly token?: string;
  /** Sent as `Last-Event-ID`. */
  readonly lastEventId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called with each event as it is parsed. */
  readonly onEvent?: (event: SseEvent) => void;
  /** Keep events for `events`, `next` and `waitFor`; without, only `onEvent` sees them. @default true */
  readonly keep?: boolean;
}

export interface SseClient {
  readonly headers: Headers;
  /** All events so far, in order. */
  readonly events: readonly SseEvent[];
  /** Comment lines so far, without the colon. */
  readonly comments: readonly string[];
  /** As a browser keeps it: the last id that a frame carried, '' before and after a reset. */
  readonly lastEventId: string;
  /** The server ended the stream, or the connection broke, or `close` was called. */
  readonly isEnded: boolean;
  /** Settles when the stream has ended; with the error when the connection broke. Never rejects. */
  readonly ended: Promise<Error | undefined>;
  /**
   * The next event that neither `next` nor `waitFor` has passed yet, but for bookmarks of progress, which may come at any
   * time. @throws at the deadline or the end of the stream.
   */
  next(deadlineMs?: number): Promise<SseEvent>;
  /** Passes events until one matches, which it returns. @throws at the deadline or the end, telling what came instead. */
  waitFor(predicate: (event: SseEvent) => boolean, deadlineMs?: number): Promise<SseEvent>;
  /** Breaks the connection; resolves when it is gone. */
  close(): Promise<void>;
}

/** Tells how far the stream is, and nothing else. */
export function isProgress({ event, data }: SseEvent): boolean {
  return event === 'BOOKMARK' && data.reason === 'Progress';
}

/** The server answered something other than an event stream. */
export class SseRefused extends Error {
  override readonly name = 'SseRefused';
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  readonly body: any;

  constructor(response: Response, text: string) {
    super(`${response.status} ${response.headers.get('content-type') ?? ''}: ${text.slice(0, 500)}`);
    this.status = response.status;
    this.headers = response.headers;
    this.body = parse(text);
  }
}

const DEADLINE_MS = 10_000;
const PASSING_CODES: ReadonlySet<number> = new Set([503, 504]);

/** The server, or what it has to read, is not there yet: a client comes back, be it a refusal or the end of its stream. */
export function isPassing(code: number): boolean {
  return PASSING_CODES.has(code);
}

/** Opens a stream; resolves with its headers. @throws {SseRefused} for any answer but 200 with an event stream. */
export async function openSse(url: string, options: SseOptions = {}): Promise<SseClient> {
  const { token, lastEventId = '', onEvent, keep = true } = options;
  const aborter = new AbortController();
  const response = await fetch(url, {
    headers: {
      Accept: 'text/event-stream',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(lastEventId !== '' && { 'Last-Event-ID': lastEventId }),
      ...options.headers,
    },
    signal: aborter.signal,
  });
  if (response.status !== 200 || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new SseRefused(response, await response.text());
  }
  const events: SseEvent[] = [];
  const comments: string[] = [];
  let taken = 0;
  let lastId = lastEventId;
  let isEnded = false;
  const changes = createChanges();
  const parser = createParser({ onEvent: take, onComment: (comment) => void comments.push(comment) });
  const ended = readAll(response.body).finally(() => {
    isEnded = true;
    changes.tell();
  });

  return {
    headers: response.headers,
    events,
    comments,
    get lastEventId() {
      return lastId;
    },
    get isEnded() {
      return isEnded;
    },
    ended,
    next: (deadlineMs) => waitFor((event) => !isProgress(event), deadlineMs),
    waitFor,
    async close() {
      aborter.abort();
      await ended;
    },
  };

  async function readAll(body: ReadableStream<Uint8Array> | null): Promise<Error | undefined> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body ?? []) {
        parser.feed(decoder.decode(chunk, { stream: true }));
        changes.tell();
      }
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  function take({ event = 'message', id, data }: EventSourceMessage): void {
    if (id !== undefined) lastId = id;
    const parsed = { event, id, data: parse(data) };
    if (keep) events.push(parsed);
    onEvent?.(parsed);
  }

  async function waitFor(predicate: (event: SseEvent) => boolean, deadlineMs: number = DEADLINE_MS): Promise<SseEvent> {
    const from = taken;
    const deadline = performance.now() + deadlineMs;
    for (;;) {
      while (taken < events.length) {
        const event = events[taken++];
        if (event && predicate(event)) return event;
      }
      const remainingMs = deadline - performance.now();
      if (isEnded || remainingMs <= 0) {
        const why = isEnded ? 'the stream ended' : `nothing matched within ${deadlineMs} ms`;
        throw new Error(
          `${why}; passed ${events.length - from} events, the last: ${describe(events.slice(from).slice(-3))}`,
        );
      }
      await changes.next(remainingMs);
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describe(events: readonly SseEvent[]): string {
  return events.map((event) => JSON.stringify(event).slice(0, 300)).join(' ');
}

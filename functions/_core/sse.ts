/**
 * Frames of a `text/event-stream`.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream section 9.2.6
 */

/** All are back within 5 s of a restart; 2,000 come 700 in a second. */
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 3_500;

/** The first bytes of every stream: a comment, so that clients and proxies see the answer begin. */
export const SSE_OPENING: string = ': ok\n\n';

/**
 * How long clients wait before they connect again. Another time for each stream: those that lose their server at once
 * come back one by one.
 * @param random from 0 up to 1.
 */
export function sseRetry(random: number): string {
  return `retry: ${Math.round(MIN_RETRY_MS + (MAX_RETRY_MS - MIN_RETRY_MS) * random)}\n\n`;
}

/** One event of a stream, as the client's parser will see it. */
export interface SseEvent {
  /** What listeners listen for. */
  readonly event: string;
  /** The client's last event id from here on. Empty: it has none any more. Absent: it keeps the one before. */
  readonly id?: string;
  /** One line of JSON. */
  readonly data: string;
}

/**
 * The frame of one event.
 * @throws {TypeError} for text that would end a field early: a line break anywhere, or NUL in the id.
 */
export function sseFrame({ event, id, data }: SseEvent): string {
  if (/[\r\n]/.test(event)) throw new TypeError(`the name of an event must be one line; got ${JSON.stringify(event)}`);
  if (data.includes('\n') || data.includes('\r')) throw new TypeError(`the data of ${event} must be one line of JSON`);
  if (id === undefined) return `event: ${event}\ndata: ${data}\n\n`;
  if (/[\r\n\0]/.test(id)) throw new TypeError(`the id of ${event} must be one line without NUL`);
  return `event: ${event}\nid: ${id}\ndata: ${data}\n\n`;
}

/** What watchers are sent: frames of text, and the bytes of one or many of them. */

import type { EventType, StreamEvent } from '#core/event.ts';
import { eventJson } from '#core/event-json.ts';
import type { SseBytes } from '#core/ports/sse.ts';
import { SSE_OPENING, sseFrame, sseRetry } from '#core/sse.ts';
import type { StatusError } from '#core/status-error.ts';

/** Version of the protocol that READY announces. */
export const PROTOCOL = 1;

/** What every stream begins with. */
export function opening(): string {
  return SSE_OPENING + sseRetry(Math.random());
}

/** Encodes when first asked for either form; then both runtimes' clients share it. */
export class FrameBytes implements SseBytes {
  readonly plain: Uint8Array;
  #chunked: Uint8Array | undefined;

  constructor(text: string) {
    this.plain = new TextEncoder().encode(text);
  }

  get chunked(): Uint8Array {
    return (this.#chunked ??= toChunk(this.plain));
  }
}

function toChunk(payload: Uint8Array): Uint8Array {
  const header = new TextEncoder().encode(`${payload.byteLength.toString(16)}\r\n`);
  const chunk = new Uint8Array(header.byteLength + payload.byteLength + 2);
  chunk.set(header);
  chunk.set(payload, header.byteLength);
  chunk.set([13, 10], header.byteLength + payload.byteLength);
  return chunk;
}

export function eventFrame(event: StreamEvent, type: EventType, cursor: string | undefined): string {
  return sseFrame({ event: type, ...(cursor !== undefined && { id: cursor }), data: eventJson(event, type) });
}

export type BookmarkReason = 'Progress' | 'InitialEventsEnd';

export function bookmarkFrame(reason: BookmarkReason, cursor: string): string {
  return sseFrame({ event: 'BOOKMARK', id: cursor, data: JSON.stringify({ reason }) });
}

/** The last word on a tenant: it was deleted, and all its events were delivered. */
export function tenantGoneFrame(tenant: string, cursor: string | undefined): string {
  const data = JSON.stringify({ reason: 'TenantGone', tenant });
  return sseFrame({ event: 'BOOKMARK', ...(cursor !== undefined && { id: cursor }), data });
}

export interface Granted {
  readonly mode: 'live' | 'resume' | 'initial';
  readonly tenants: '*' | readonly string[];
  readonly cursor: string;
}

/** The handshake. In mode initial it has no id: who reconnects before the end of the initial events needs them again. */
export function readyFrame(granted: Granted): string {
  const data = JSON.stringify({ protocol: PROTOCOL, ...granted });
  return sseFrame({ event: 'READY', ...(granted.mode !== 'initial' && { id: granted.cursor }), data });
}

/** The end of a stream by an error. An empty id makes clients drop theirs: with it they would be refused again. */
export function errorFrame(error: StatusError, id: string | undefined): string {
  return sseFrame({ event: 'ERROR', ...(id !== undefined && { id }), data: JSON.stringify(error.toBody()) });
}

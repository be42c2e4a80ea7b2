/** What lies in a feed's ring: one event, or the end of one tenant, with the cursor behind it. */

import type { CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { pointOf } from '#core/ports/event-log.ts';
import { eventFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';
import { furthest, withPoint } from '#functions/watch/vectors.ts';

export interface Entry {
  /** Where a watcher is that has processed this. */
  readonly vector: CursorVector;
  /** About what it takes on the wire. */
  readonly size: number;
  /** About what it takes in memory, with the vector that it is the first to hold. */
  readonly heldBytes: number;
  /** Milliseconds of a clock that only runs forward. */
  readonly appendedAtMs: number;
  /**
   * What a watcher of the selection is sent; undefined for nothing. Serialised once, but for a watcher that is elsewhere
   * ahead of it: its cursor must not fall back.
   */
  frame(selection: Selection, ahead?: CursorVector): string | undefined;
  /** Whether a watcher at this vector has it already. */
  isKnownAt(vector: CursorVector): boolean;
}

/** Makes the cursor of a vector; absent where events carry none. */
export type Seal = ((vector: CursorVector) => string) | undefined;

/** Where an event lies: the vectors before and behind its batch. Only the last of a batch knows the one behind. */
export interface Place {
  readonly before: CursorVector;
  readonly behind: CursorVector | undefined;
}

const ENVELOPE_BYTES = 350;
const POINT_BYTES = 100;

export class EventEntry implements Entry {
  readonly appendedAtMs: number;
  readonly #event: StreamEvent;
  readonly #place: Place;
  readonly #seal: Seal;
  #cursor: string | undefined;
  #text: string | undefined;

  constructor(event: StreamEvent, place: Place, seal: Seal) {
    this.#event = event;
    this.#place = place;
    this.#seal = seal;
    this.appendedAtMs = performance.now();
  }

  /** One vector is held for each batch, not for each event: over 256 streams it takes 25 KB. */
  get vector(): CursorVector {
    return this.#place.behind ?? withPoint(this.#place.before, this.#event.stream, pointOf(this.#event));
  }

  get size(): number {
    return ENVELOPE_BYTES + this.#event.size;
  }

  get heldBytes(): number {
    return this.size + (this.#place.behind?.size ?? 0) * POINT_BYTES;
  }

  frame(selection: Selection, ahead?: CursorVector): string | undefined {
    const type = selection.typeOf(this.#event);
    if (type === undefined) return undefined;
    if (ahead) return eventFrame(this.#event, type, this.#seal?.(furthest(this.vector, ahead)));
    this.#cursor ??= this.#seal?.(this.vector);
    if (type !== this.#event.type) return eventFrame(this.#event, type, this.#cursor);
    return (this.#text ??= eventFrame(this.#event, type, this.#cursor));
  }

  isKnownAt(vector: CursorVector): boolean {
    const point = vector.get(this.#event.stream);
    return point !== undefined && point.seq >= this.#event.seq;
  }
}

export class TenantGoneEntry implements Entry {
  readonly vector: CursorVector;
  readonly appendedAtMs: number;
  readonly size: number = ENVELOPE_BYTES;
  readonly #tenant: string;
  readonly #seal: Seal;

  constructor(tenant: string, vector: CursorVector, seal: Seal) {
    this.#tenant = tenant;
    this.vector = vector;
    this.#seal = seal;
    this.appendedAtMs = performance.now();
  }

  get heldBytes(): number {
    return this.size + this.vector.size * POINT_BYTES;
  }

  frame(_selection: Selection, ahead?: CursorVector): string {
    return tenantGoneFrame(this.#tenant, this.#seal?.(ahead ? furthest(this.vector, ahead) : this.vector));
  }

  isKnownAt(): boolean {
    return false;
  }
}

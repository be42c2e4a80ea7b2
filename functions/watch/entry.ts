/** What lies in a feed's ring: one event, or the end of one tenant, with the cursor behind it. */

import type { CursorVector } from '#core/cursor.ts';
import type { StreamEvent } from '#core/event.ts';
import { eventFrame, tenantGoneFrame } from '#functions/watch/frames.ts';
import type { Selection } from '#functions/watch/selection.ts';

export interface Entry {
  /** Where a watcher is that has processed this. */
  readonly vector: CursorVector;
  /** About what it takes on the wire. */
  readonly size: number;
  /** Milliseconds of a clock that only runs forward. */
  readonly appendedAtMs: number;
  /**
   * What a watcher of the selection is sent; undefined for nothing. Serialised once, but for a watcher that is elsewhere
   * behind it: its cursor must not fall back.
   */
  frame(selection: Selection, vector?: CursorVector): string | undefined;
  /** Whether a watcher at this vector has it already. */
  isBehind(vector: CursorVector): boolean;
}

/** Seals the vector of an entry; undefined where events carry no cursor of their own. */
export type SealEntry = (vector: CursorVector) => string | undefined;

const ENVELOPE_BYTES = 700;

export class EventEntry implements Entry {
  readonly vector: CursorVector;
  readonly appendedAtMs: number;
  readonly #event: StreamEvent;
  readonly #seal: SealEntry;
  #cursor: string | undefined;
  #text: string | undefined;

  constructor(event: StreamEvent, vector: CursorVector, seal: SealEntry) {
    this.#event = event;
    this.vector = vector;
    this.#seal = seal;
    this.appendedAtMs = performance.now();
  }

  get size(): number {
    const { spec, status, annotations } = this.#event.resource;
    return ENVELOPE_BYTES + spec.length + status.length + annotations.length;
  }

  frame(selection: Selection, vector: CursorVector = this.vector): string | undefined {
    const type = selection.typeOf(this.#event);
    if (type === undefined) return undefined;
    if (vector !== this.vector) return eventFrame(this.#event, type, this.#seal(vector));
    this.#cursor ??= this.#seal(this.vector);
    if (type !== this.#event.type) return eventFrame(this.#event, type, this.#cursor);
    return (this.#text ??= eventFrame(this.#event, type, this.#cursor));
  }

  isBehind(vector: CursorVector): boolean {
    const point = vector.get(this.#event.stream);
    return point !== undefined && point.seq >= this.#event.seq;
  }
}

export class TenantGoneEntry implements Entry {
  readonly vector: CursorVector;
  readonly appendedAtMs: number;
  readonly size: number = ENVELOPE_BYTES;
  readonly #tenant: string;
  readonly #seal: SealEntry;

  constructor(tenant: string, vector: CursorVector, seal: SealEntry) {
    this.#tenant = tenant;
    this.vector = vector;
    this.#seal = seal;
    this.appendedAtMs = performance.now();
  }

  frame(_selection: Selection, vector: CursorVector = this.vector): string {
    return tenantGoneFrame(this.#tenant, this.#seal(vector));
  }

  isBehind(): boolean {
    return false;
  }
}

/** Dead letters that one member is to be sent again: those that are due, and those that it was sent and has not answered. */

import type { AssignedLane, Retry } from '#core/ports/watch-groups.ts';
import type { Delivery } from '#functions/watch/groups/member/lane.ts';

interface SentDeadLetter extends Delivery {
  /** As clients see it. */
  readonly lane: string;
  readonly fence: bigint;
}

export class MemberDeadLetters {
  readonly #due = new Map<bigint, Retry>();
  readonly #sent = new Map<bigint, SentDeadLetter>();

  get sentCount(): number {
    return this.#sent.size;
  }

  /** Of those that were sent. */
  get oldest(): Delivery | undefined {
    // They are in the order in which they were sent.
    const [oldest] = this.#sent.values();
    return oldest;
  }

  /** Whether one of this lane was sent and is not answered. */
  isOn(lane: string): boolean {
    return [...this.#sent.values()].some((sent) => sent.lane === lane);
  }

  /** What is asked for now, of all lanes that the member holds. What it was sent before the last delivery is forgotten. */
  take(assigned: readonly AssignedLane[]): void {
    this.#due.clear();
    const asked = new Set<bigint>();
    for (const retry of assigned.flatMap(({ retries }) => retries)) {
      asked.add(retry.id);
      const sent = this.#sent.get(retry.id);
      if (sent && sent.fence >= retry.fence) continue;
      this.#sent.delete(retry.id);
      this.#due.set(retry.id, retry);
    }
    for (const id of this.#sent.keys()) if (!asked.has(id)) this.#sent.delete(id);
  }

  /** The first of those that are due, in the order of their ids. */
  due(limit: number): readonly Retry[] {
    const retries = [...this.#due.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return retries.slice(0, Math.max(0, limit));
  }

  /**
   * These were asked for, and of these the ones up to an id were looked at: what did not come is not to be sent. All were,
   * when there is none.
   */
  looked(asked: readonly Retry[], upTo: bigint | undefined): void {
    for (const { id, fence } of asked) {
      if ((upTo === undefined || id <= upTo) && this.#due.get(id)?.fence === fence) this.#due.delete(id);
    }
  }

  sent(id: bigint, deadLetter: SentDeadLetter): void {
    const due = this.#due.get(id);
    if (due && due.fence <= deadLetter.fence) this.#due.delete(id);
    this.#sent.delete(id);
    this.#sent.set(id, deadLetter);
  }

  /** It is confirmed, or refused. Returns whether it was sent here. */
  done({ id, fence }: Retry): boolean {
    return this.#sent.get(id)?.fence === fence && this.#sent.delete(id);
  }

  /** What was sent before this moment is not on its way any more. Returns whether there was any. */
  forgetSent(beforeMs: number): boolean {
    const old = [...this.#sent].filter(([, { atMs }]) => atMs < beforeMs);
    for (const [id] of old) this.#sent.delete(id);
    return old.length > 0;
  }

  clear(): void {
    this.#due.clear();
    this.#sent.clear();
  }
}

/** Members that have ended leave together: on a stop, each group is settled once, and no lane goes to who leaves next. */

import type { LaneMark, WatchGroups } from '#core/ports/watch-groups.ts';

export interface LeavingDeps {
  readonly groups: Pick<WatchGroups, 'leave'>;
  /** Marks that are on their way now are stored, or were tried to be. */
  readonly marked: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export class Leaving {
  readonly #deps: LeavingDeps;
  #members: bigint[] = [];
  #marks: LaneMark[] = [];
  #running: Promise<void> | undefined;

  constructor(deps: LeavingDeps) {
    this.#deps = deps;
  }

  /** @param marks what is to be kept of its lanes. */
  add(member: bigint, marks: readonly LaneMark[]): void {
    this.#members.push(member);
    this.#marks.push(...marks);
    this.#running ??= this.#run();
  }

  /** Resolves when all have left, or it was tried. */
  async done(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Those that end in the same turn come along.
    await Promise.resolve();
    while (this.#members.length > 0) {
      const [members, marks] = [this.#members, this.#marks];
      this.#members = [];
      this.#marks = [];
      try {
        // Behind those that are on their way: what they say of its lanes would come too late.
        await this.#deps.marked();
        await this.#deps.groups.leave(members, marks);
      } catch (error) {
        // A lease that cannot be given back ends by itself.
        this.#deps.onError(error);
      }
    }
    this.#running = undefined;
  }
}

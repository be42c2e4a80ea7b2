/** PORT. How a resident loop sleeps without losing a wake-up, and without costing writers while it is awake. */

export interface WriterSleep {
  /**
   * Resolves when there may be work: a writer committed, somebody called `wake`, or the floor passed. `drain` is called
   * once writers are known to notify, and must begin all that is visible, unless `enough` aborts: then there is more to
   * come, and the caller drains when this resolves. A writer that stays open delays nobody meanwhile.
   */
  sleep(drain: (enough: AbortSignal) => Promise<void>): Promise<void>;

  /** Ends the sleep, or the next one if there is none: for work that no writer tells of. */
  wake(): void;
}

/** Something that changes, and those who wait for it. */

export interface Changes {
  /** It has changed: everyone who waits goes on. */
  tell(): void;
  /** Resolves at the next change, or when the time is over. */
  next(milliseconds: number): Promise<void>;
}

export function createChanges(): Changes {
  const waiting = new Set<() => void>();
  return {
    tell(): void {
      for (const goOn of waiting) goOn();
    },
    async next(milliseconds: number): Promise<void> {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, milliseconds);
        waiting.add(done);
        function done(): void {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        }
      });
    },
  };
}

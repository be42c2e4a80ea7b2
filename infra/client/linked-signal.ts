/** A signal of one's own that also follows another's, without holding on to it for as long as that lives. */

export interface LinkedSignal {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Follows the other one no longer. */
  release(): void;
}

export function linkSignal(other: AbortSignal | undefined): LinkedSignal {
  const aborter = new AbortController();
  const follow = (): void => aborter.abort(other?.reason);
  other?.addEventListener('abort', follow, { once: true });
  if (other?.aborted) follow();
  return {
    signal: aborter.signal,
    abort: (reason) => aborter.abort(reason),
    release: () => other?.removeEventListener('abort', follow),
  };
}

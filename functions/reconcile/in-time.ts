/** Calls of functions that are not ours, and may hang. */

/**
 * @param signal ends it too.
 * @throws {Error} when it takes longer; it is told by its signal, and not waited for.
 */
export async function inTime<Value>(
  call: (signal: AbortSignal) => Promise<Value>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Value> {
  signal?.throwIfAborted();
  const late = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ended = new Promise<never>((_, reject) => {
    late.signal.addEventListener('abort', () => reject(late.signal.reason as Error), { once: true });
    timer = setTimeout(() => late.abort(new Error(`it took longer than ${timeoutMs} ms`)), timeoutMs);
  });
  const stop = (): void => late.abort(signal?.reason);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([call(late.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

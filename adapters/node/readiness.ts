/** Checks of whether a process can do its work. */

export interface ReadinessCheck {
  readonly name: string;
  /** Resolves when ready; throws a reason when not. The signal fires at the deadline. */
  check(signal: AbortSignal): Promise<void>;
}

export interface CheckResult {
  readonly name: string;
  readonly status: 'ready' | 'not ready';
  /** Why not. */
  readonly reason?: string;
}

/** Never throws: no answer within the time, or an error, is an answer too. */
export async function runCheck(check: ReadinessCheck, timeoutMs: number): Promise<CheckResult> {
  const { name } = check;
  const deadline = new AbortController();
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(function expire() {
    const error = new Error(`no answer within ${timeoutMs} ms`);
    reject(error);
    deadline.abort(error);
  }, timeoutMs);
  try {
    await Promise.race([check.check(deadline.signal), expired]);
    return { name, status: 'ready' };
  } catch (error) {
    return { name, status: 'not ready', reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}

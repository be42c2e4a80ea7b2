/** A start that cannot go on, for a reason the operator can change. Its message is shown alone, without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** The text of anything thrown. Node's own system errors carry path and reason in it. */
export function messageOf(error: unknown): string {
  // A refused connection to a name with several addresses is an AggregateError without a message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** Whether a file operation failed with this code of errno(3), such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

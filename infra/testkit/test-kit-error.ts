/** A kind does not do what it must. The message says at which call, in which step, and what differs. */
export class TestKitError extends Error {
  override readonly name = 'TestKitError';
}

/** Waits that end. */

/** It took too long. */
export class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} when it takes longer. What the promise becomes after that is dropped. */
export async function within<T>(promise: Promise<T>, timeoutMs: number, subject: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Late(`${subject} took longer than ${Math.round(timeoutMs)} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

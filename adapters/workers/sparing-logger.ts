/** A log that callers cannot fill: each of their requests may be worth a warning while something is away. */

import type { Logger } from '#core/ports/logger.ts';
import { TokenBuckets } from '#core/token-buckets.ts';

/** Of the same words; what is wrong is seen in one. */
const WARNINGS_PER_SECOND = 1;
/** Words are this program's own, so there are few. */
const MAX_WORDS = 1_000;

/** The same log with few warnings of the same words; the next one tells as `leftOut` how many were not written before it. */
export function sparingLogger(logger: Logger): Logger {
  const buckets = new TokenBuckets(MAX_WORDS);
  const leftOut = new Map<string, number>();
  return sparing(logger);

  function sparing(own: Logger): Logger {
    return {
      debug: (fields, message) => own.debug(fields, message),
      info: (fields, message) => own.info(fields, message),
      error: (fields, message) => own.error(fields, message),
      child: (fields) => sparing(own.child(fields)),
      warn(fields, message) {
        const before = leftOut.get(message) ?? 0;
        if (!buckets.take(message, WARNINGS_PER_SECOND, performance.now()).isTaken) {
          leftOut.set(message, before + 1);
          return;
        }
        leftOut.delete(message);
        own.warn(before > 0 ? { ...fields, leftOut: before } : fields, message);
      },
    };
  }
}

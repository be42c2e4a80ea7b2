/**
 * Tests of the black-box suites that another answer of the platform's makes pointless, with the reason. They are about
 * what lies in front of the worker, which no worker can change.
 */

import { beforeEach } from 'vitest';

const FRONT_COMPRESSES = 'the front compresses by itself, and with brotli too; so does the platform';

const FRONT_TELLS_LATE =
  'wrangler dev does not tell that a client is gone: the second frame that cannot be sent does, seconds later';

const DIFFERENCES: ReadonlyMap<string, string> = new Map([
  ['for "br" it is not', FRONT_COMPRESSES],
  ['for undefined it is not', FRONT_COMPRESSES],
  ['a large list is compressed for who asks, and is the same list', FRONT_COMPRESSES],
  ['small answers, objects, errors and HEAD are left as they are', FRONT_COMPRESSES],
  ['open streams are counted while they are open, and ended ones by their reason', FRONT_TELLS_LATE],
  ['the end of a token and the end of a tenant are told apart from clients that go', FRONT_TELLS_LATE],
  ['members of groups are counted apart, with what their groups are behind by and what was refused', FRONT_TELLS_LATE],
]);

/** For a describe block around a suite. */
export function skipDifferences(): void {
  beforeEach(({ task, skip }) => {
    const reason = DIFFERENCES.get(task.name);
    if (reason !== undefined) skip(reason);
  });
}

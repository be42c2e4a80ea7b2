/** Lets the controllers work until they have nothing more to do. */

import type { KitDriver } from '#infra/testkit/driver.ts';
import { TestKitError } from '#infra/testkit/test-kit-error.ts';
import type { Work } from '#infra/testkit/work.ts';

/** While something asks to be looked at again, so many looks in a row have to change nothing. */
const PATIENCE = 10;
const MOST_ROUNDS = 200;

/**
 * Runs what is due, then makes every timer, retry and resync due and runs those, until no object changes any more.
 * @param look takes the looks; they can be watched. @default lookAtAll
 * @throws {TestKitError} when it goes on for ever.
 */
export async function settle(
  driver: KitDriver,
  work: Work,
  look: () => Promise<void> = () => lookAtAll(driver, work),
): Promise<void> {
  await driver.runDue();
  for (let round = 1, quiet = 0; quiet < ((await work.hasTimers()) ? PATIENCE : 1); round++) {
    if (round > MOST_ROUNDS) {
      throw new TestKitError(
        `after ${MOST_ROUNDS} looks at every object their status still changes; a pass with nothing to do must report what the one before did`,
      );
    }
    const before = await work.versions();
    await look();
    quiet = (await work.versions()) === before ? quiet + 1 : 0;
  }
}

/** One pass of every object at least, as resync does. */
export async function lookAtAll(driver: KitDriver, work: Work): Promise<void> {
  await work.makeAllDue();
  await driver.runDue();
}

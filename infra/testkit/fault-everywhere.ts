/** Lets every external call of a scenario fail, in turn and in every way. */

import { sameJson } from '#core/json.ts';
import type { Plan } from '#infra/testkit/calls.ts';
import { type Fault, FAULTS } from '#infra/testkit/faults.ts';
import { assertSame, failure, runSteps, type Scenario, type Snapshot, type Stage } from '#infra/testkit/scenario.ts';
import { lookAtAll } from '#infra/testkit/settle.ts';
import { TestKitError } from '#infra/testkit/test-kit-error.ts';

export interface FaultOptions {
  /** @default all */
  readonly faults?: readonly Fault[];
}

export interface FaultReport {
  readonly calls: readonly string[];
  /** Runs in which a call failed. */
  readonly runs: number;
}

/** How many looks are taken at every object while a fault lasts. */
const LOOKS = 1;

/**
 * Runs the scenario once in peace, then once for each call and fault: from that call on, calls of its name fail until the
 * step has been tried for a while. Meanwhile nothing may go that stays in peace, and not all objects may look as they do in peace unless the outside world does so too. Then the fault ends.
 * @throws {TestKitError} when that is broken, or things do not become as in peace.
 */
export async function faultEverywhere(
  stage: Stage,
  scenario: Scenario,
  { faults = FAULTS }: FaultOptions = {},
): Promise<FaultReport> {
  const { driver, work, calls } = stage;
  const peace = await runSteps(stage, scenario, { label: 'without a fault', beforeSettled: tryForAWhile });
  const names = peace.at(-1)?.calls ?? [];
  if (names.length === 0) {
    throw new TestKitError(
      'no pass of the scenario made an external call; give the kinds what kit.external(port) returns',
    );
  }
  let runs = 0;
  for (const [index, name] of names.entries()) {
    for (const fault of faults) {
      const plan: Plan = { at: index + 1, fault, name };
      const label = `${fault} of ${name} from call ${index + 1} of ${names.length} on`;
      const run = await runSteps(stage, scenario, {
        plan,
        label,
        async beforeSettled(step, snapshot) {
          const begun = await snapshot();
          await tryForAWhile();
          if (calls.hit === undefined) return;
          assertUnharmed(label, step, begun, await snapshot());
          calls.heal();
        },
      });
      runs += 1;
      for (const [step, expected] of peace.entries()) {
        assertSame(label, step, 'the outside world is another', expected.state, run[step]?.state ?? {});
        assertSame(label, step, 'the objects are others', expected.outcomes, run[step]?.outcomes ?? {});
      }
    }
  }
  return { calls: names, runs };

  async function tryForAWhile(): Promise<void> {
    await driver.runDue();
    for (let look = 0; look < LOOKS; look++) await lookAtAll(driver, work);
  }

  function assertUnharmed(label: string, step: number, begun: Snapshot, now: Snapshot): void {
    const after = peace[step]?.state ?? {};
    const lost = Object.keys(begun.state).filter((key) => key in after && !(key in now.state));
    if (lost.length > 0) {
      throw failure(label, step, 'while the fault lasted, something went that should have stayed', lost);
    }
    const outcomes = peace[step]?.outcomes ?? {};
    if (sameJson(now.outcomes, outcomes)) {
      assertSame(label, step, 'while the fault lasted, all objects said that they were done, and', after, now.state);
    }
  }
}

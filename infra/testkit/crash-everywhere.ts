/** Dies at every external call of a scenario, in turn. */

import type { Plan } from '#infra/testkit/calls.ts';
import { assertSame, runSteps, type Scenario, type Stage } from '#infra/testkit/scenario.ts';
import { TestKitError } from '#infra/testkit/test-kit-error.ts';

export interface CrashReport {
  /** External calls of the scenario when nothing goes wrong, in order. */
  readonly calls: readonly string[];
  /** How many times a process died. */
  readonly crashes: number;
}

/**
 * Runs the scenario once in peace, then twice for each call that it made: the process dies before the call, or after the
 * call took effect and before its answer was seen. A fresh process goes on.
 * @throws {TestKitError} when the outside world, or what the controllers say, is not the same after some step.
 */
export async function crashEverywhere(stage: Stage, scenario: Scenario): Promise<CrashReport> {
  const peace = await runSteps(stage, scenario, { label: 'without a crash' });
  const calls = peace.at(-1)?.calls ?? [];
  if (calls.length === 0) {
    throw new TestKitError(
      'no pass of the scenario made an external call; give the kinds what kit.external(port) returns',
    );
  }
  let crashes = 0;
  for (const [index, name] of calls.entries()) {
    for (const crash of ['before', 'after'] as const) {
      const plan: Plan = { at: index + 1, crash };
      const label = `crash ${crash} call ${index + 1} of ${calls.length} (${name})`;
      const run = await runSteps(stage, scenario, { plan, label });
      if (stage.calls.hit === undefined) {
        throw new TestKitError(`${label}: this time that call was not made; a scenario must do the same in each run`);
      }
      crashes += 1;
      for (const [step, expected] of peace.entries()) {
        assertSame(label, step, 'the outside world is another', expected.state, run[step]?.state ?? {});
        assertSame(label, step, 'the objects are others', expected.outcomes, run[step]?.outcomes ?? {});
      }
    }
  }
  return { calls, crashes };
}

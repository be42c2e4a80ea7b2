/** What is repeated with crashes and faults: steps, and how the outside world looks after each of them. */

import { type JsonObject, type JsonValue, parseJsonObject } from '#core/json.ts';
import type { Calls, Plan } from '#infra/testkit/calls.ts';
import { differences } from '#infra/testkit/differences.ts';
import type { KitDriver } from '#infra/testkit/driver.ts';
import { lookAtAll, settle } from '#infra/testkit/settle.ts';
import { TestKitError } from '#infra/testkit/test-kit-error.ts';
import type { Work } from '#infra/testkit/work.ts';

export interface Scenario {
  /**
   * What users, and strangers to the outside world, do: create, change, delete, damage. After each step the kit runs passes
   * until nothing is left to do. Each run begins without objects, and must do the same.
   */
  readonly steps: readonly (() => unknown)[];
  /**
   * Everything that exists outside now, by name, as JSON: `{ "blue": { "size": 1 } }`. Uids of objects may be in it; what
   * else differs from run to run, such as times and passwords, must not.
   */
  state(): object | Promise<object>;
  /** Brings the outside world to where the scenario begins. Called before each run; left out where it ends there itself. */
  reset?(): unknown;
}

/** After one step. */
export interface Snapshot {
  /** Of the outside world; uids are replaced by whose they are. */
  readonly state: JsonObject;
  /** What the controllers say. */
  readonly outcomes: JsonObject;
  /** Names of all calls up to here. */
  readonly calls: readonly string[];
}

export interface Stage {
  readonly driver: KitDriver;
  readonly work: Work;
  readonly calls: Calls;
}

export interface RunOptions {
  readonly plan?: Plan;
  /** For messages: what is done to this run. */
  readonly label: string;
  /** Called after a step was done and before it is settled in peace; only its calls count. @param step from 0 on. */
  readonly beforeSettled?: (step: number, snapshot: () => Promise<Snapshot>) => Promise<void>;
}

/** Runs all steps. @returns a snapshot for each. @throws {TestKitError} when a look with nothing to do changes something. */
export async function runSteps(
  { driver, work, calls }: Stage,
  scenario: Scenario,
  { plan, label, beforeSettled }: RunOptions,
): Promise<readonly Snapshot[]> {
  await work.clear();
  await scenario.reset?.();
  calls.start(plan);
  const owners = new Map<string, string>();
  const snapshots: Snapshot[] = [];
  for (const [index, step] of scenario.steps.entries()) {
    await step();
    await beforeSettled?.(index, snapshot);
    const finish = (): Promise<void> => settle(driver, work);
    await (beforeSettled ? calls.uncounted(finish) : finish());
    // Looks with nothing to do differ in number from run to run.
    await calls.uncounted(() => assertSteady(index));
    snapshots.push(await snapshot());
  }
  return snapshots;

  async function snapshot(): Promise<Snapshot> {
    for (const [uid, name] of await work.uids()) owners.set(uid, name);
    const made = [...calls.made];
    return {
      state: named((await scenario.state()) as JsonObject),
      outcomes: named(await work.outcomes()),
      calls: made,
    };
  }

  function named(value: JsonObject): JsonObject {
    let text = JSON.stringify(value);
    for (const [uid, name] of owners) text = text.replaceAll(uid, `uid of ${name}`);
    return parseJsonObject(text);
  }

  async function assertSteady(index: number): Promise<void> {
    const { state } = await snapshot();
    const [versions, events] = [await work.versions(), await work.normalEvents()];
    await lookAtAll(driver, work);
    const found = [...differences(state, (await snapshot()).state)];
    if ((await work.versions()) !== versions) found.push('an object got another resourceVersion');
    if ((await work.normalEvents()) !== events) found.push('a pass told of a change by ctx.event(…)');
    if (found.length > 0) throw failure(label, index, 'a look with nothing to do changed something', found);
  }
}

/** @throws {TestKitError} unless both are the same. */
export function assertSame(label: string, step: number, what: string, expected: JsonValue, found: JsonValue): void {
  const lines = differences(expected, found);
  if (lines.length > 0) throw failure(label, step, what, lines);
}

export function failure(label: string, step: number, what: string, lines: readonly string[]): TestKitError {
  return new TestKitError(`${label}: after step ${step + 1}, ${what}:\n  ${lines.join('\n  ')}`);
}

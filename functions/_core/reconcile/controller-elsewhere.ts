/**
 * Controllers that run in programs of somebody else: they watch the kind, and report to `/status` under their name. What
 * they declare is theirs alone, as with controllers here.
 */

import type { JsonObject } from '#core/json.ts';
import { isJsonArray, isJsonObject } from '#core/json.ts';
import { dnsLabelProblem } from '#core/names.ts';
import { shareProblems } from '#core/reconcile/controller.ts';

export interface ControllerElsewhereDefinition {
  /** A DNS label, unique in its group, such as `dns`. It reports as `fieldManager=group/name`. */
  readonly name: string;
  /** Types of the conditions that it sets. */
  readonly conditions?: readonly string[];
  /** Top-level fields of the status that it reports. */
  readonly statusFields?: readonly string[];
}

/** A checked one. */
export interface ControllerElsewhere {
  readonly name: string;
  /** `group/name` */
  readonly id: string;
  readonly conditions: readonly string[];
  readonly statusFields: readonly string[];
}

/** With its defaults; adds to `problems` what is wrong. Definitions may come from JavaScript. */
export function checkControllerElsewhere(
  group: string,
  { name, conditions = [], statusFields = [] }: ControllerElsewhereDefinition,
  problems: string[],
): ControllerElsewhere {
  const nameProblem = typeof name === 'string' ? dnsLabelProblem(name) : 'must be a text';
  for (const problem of [
    ...(nameProblem === undefined ? [] : [nameProblem]),
    ...shareProblems(conditions, statusFields),
  ]) {
    problems.push(`controller elsewhere ${JSON.stringify(name)} ${problem}`);
  }
  return Object.freeze({ name, id: `${group}/${name}`, conditions, statusFields });
}

/**
 * A report with what it leaves out of others put back from the stored status: what it will be once it is stored. The store
 * does the same, and refuses what differs.
 */
export function completeReport(
  { conditions, statusFields }: ControllerElsewhere,
  stored: JsonObject,
  reported: JsonObject,
): JsonObject {
  const others = Object.entries(stored).filter(([field]) => !statusFields.includes(field) && field !== 'conditions');
  const complete = { ...Object.fromEntries(others), ...reported };
  const [said, before] = [reported['conditions'] ?? [], stored['conditions'] ?? []];
  if (!isJsonArray(said) || !isJsonArray(before)) return complete;
  const named = new Set(said.map((condition) => isJsonObject(condition) && condition['type']));
  const kept = before.filter((each) => {
    const type = isJsonObject(each) ? each['type'] : undefined;
    return typeof type === 'string' && !named.has(type) && !conditions.includes(type);
  });
  const all = [...said, ...kept];
  return all.length === 0 && stored['conditions'] === undefined ? complete : { ...complete, conditions: all };
}

/** Conditions in a status that a controller reports: a report that says nothing new changes nothing. */

import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';

type Condition = JsonObject & { readonly type: string };

/**
 * The status with its conditions in the order of their types, and each with the time of its last transition: where `status`
 * has not changed, the time that was reported then. Lists that are not of distinct conditions stay as they are: their
 * kind's schema tells what is wrong with them.
 */
export function settleConditions(before: JsonObject, after: JsonObject): JsonObject {
  const conditions = conditionsOf(after['conditions']);
  if (conditions === undefined) return after;
  const known = new Map(conditionsOf(before['conditions'])?.map((condition) => [condition.type, condition]));
  const settled = conditions.map((condition) => withTransitionTime(known.get(condition.type), condition));
  return { ...after, conditions: settled.toSorted((a, b) => (a.type < b.type ? -1 : 1)) };
}

/** Undefined for anything else than a list of conditions of distinct types. */
function conditionsOf(value: JsonValue | undefined): readonly Condition[] | undefined {
  if (!isJsonArray(value) || !value.every(isCondition)) return undefined;
  return new Set(value.map(({ type }) => type)).size === value.length ? value : undefined;
}

function isCondition(value: JsonValue): value is Condition {
  return isJsonObject(value) && typeof value['type'] === 'string';
}

function withTransitionTime(before: Condition | undefined, after: Condition): Condition {
  const time = before?.['lastTransitionTime'];
  if (time === undefined || before?.['status'] !== after['status']) return after;
  return { ...after, lastTransitionTime: time };
}

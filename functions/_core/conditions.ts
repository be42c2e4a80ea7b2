/** Conditions in a status that a controller reports: what they look like, and that a report of nothing new changes nothing. */

import * as v from 'valibot';

import { fieldPath } from '#core/field-path.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import { validateDocument } from '#core/schema-causes.ts';
import type { StatusCause } from '#core/status-error.ts';

type Condition = JsonObject & { readonly type: string };

/** What every kind's conditions are held to. Clients in Go send null for a list without elements, and for no time. */
const CONDITIONS = v.looseObject({
  conditions: v.nullish(
    v.array(
      v.looseObject({
        type: v.pipe(v.string(), v.minLength(1), v.maxLength(316)),
        status: v.picklist(['True', 'False', 'Unknown']),
        reason: v.nullish(v.pipe(v.string(), v.maxLength(1024))),
        message: v.nullish(v.pipe(v.string(), v.maxLength(32_768))),
        lastTransitionTime: v.nullish(v.pipe(v.string(), v.isoTimestamp())),
      }),
    ),
  ),
});

/**
 * One cause per field that is wrong: conditions are a list of objects, each with a type of its own and the status `True`,
 * `False` or `Unknown`.
 * @param secretPaths of the kind; a value there is in no message.
 */
export function conditionCauses(
  conditions: JsonValue | undefined,
  secretPaths: readonly string[],
): readonly StatusCause[] {
  if (conditions === undefined) return [];
  const { causes } = validateDocument('status', { conditions }, CONDITIONS, secretPaths);
  if (causes || !isJsonArray(conditions)) return causes ?? [];
  const types = conditions.map((condition) => (isJsonObject(condition) ? condition['type'] : undefined));
  return types.flatMap((type, index) => {
    if (types.indexOf(type) === index) return [];
    const field = fieldPath(['status', 'conditions', index, 'type']);
    return [{ reason: 'FieldValueDuplicate', message: 'another condition has this type', field }];
  });
}

/**
 * The status with its conditions in the order of their types, and each with the time of its last transition: where `status`
 * has not changed, the time that was reported then. Lists that are not of distinct conditions stay as they are: they are
 * refused as they are sent.
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

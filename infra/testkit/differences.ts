/** What differs between two JSON values, in words. */

import { isJsonArray, isJsonObject, type JsonValue, sameJson } from '#core/json.ts';

const MOST = 10;
const LONGEST = 200;

/** One line for each place that differs, ten at most; empty when they are the same. */
export function differences(expected: JsonValue, found: JsonValue): readonly string[] {
  const lines: string[] = [];
  compare('', expected, found);
  return lines.length > MOST ? [...lines.slice(0, MOST), `and ${lines.length - MOST} more`] : lines;

  function compare(path: string, a: JsonValue | undefined, b: JsonValue | undefined): void {
    if (sameJson(a, b)) return;
    const isBoth = (isJsonObject(a) && isJsonObject(b)) || (isJsonArray(a) && isJsonArray(b));
    if (!isBoth) {
      lines.push(`${path || 'it'}: expected ${shown(a)}, found ${shown(b)}`);
      return;
    }
    const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))] as Map<string, JsonValue>[];
    for (const key of new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])) {
      compare(path === '' ? key : `${path}.${key}`, left?.get(key), right?.get(key));
    }
  }
}

function shown(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

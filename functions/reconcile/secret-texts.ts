/** Takes an object's secrets out of what is said of it: messages of errors quote what they were given. */

import { isJsonArray, isJsonObject, parseJsonObject, type JsonValue } from '#core/json.ts';
import type { ResourceRow } from '#core/resource.ts';
import { onlySecrets } from '#core/secret-paths.ts';

/** Shorter ones would take ordinary words out. */
const SHORTEST = 6;

/** @param redact the secret paths of the kind. */
export function secretHider(row: ResourceRow, redact: readonly string[]): (text: string) => string {
  if (redact.length === 0) return (text) => text;
  const secrets = (['spec', 'status'] as const)
    .flatMap((root) => textsIn(onlySecrets(root, parseJsonObject(row[root]), redact)))
    .filter((text) => text.length >= SHORTEST)
    // One may be a part of another, whose rest would stay.
    .toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '***'), text);
}

function textsIn(value: JsonValue): string[] {
  if (typeof value === 'string') return [value];
  if (isJsonArray(value)) return value.flatMap(textsIn);
  return isJsonObject(value) ? Object.values(value).flatMap(textsIn) : [];
}

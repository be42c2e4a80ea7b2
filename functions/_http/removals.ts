/** Requests by which something can only go away: who is over its rate must still be able to clean up. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { isJsonArray, isJsonObject, parseJson, type JsonValue } from '#core/json.ts';

/** A larger patch does more than to take finalizers off; it is not read for this. */
const MAX_PATCH_BYTES = 4096;
const TOP_FIELDS: readonly string[] = ['apiVersion', 'kind', 'metadata'];
const METADATA_FIELDS: readonly string[] = ['name', 'namespace', 'uid', 'resourceVersion', 'finalizers'];
const FINALIZERS = /^\/metadata\/finalizers(\/|$)/;

/** A DELETE, or a deletion by force. */
export function isDeletion(c: Context<HttpEnv>): boolean {
  return c.req.method === 'DELETE' || (c.req.method === 'POST' && c.req.path.endsWith('/force-delete'));
}

/** A small patch of either type that changes nothing but finalizers. The body can be read after it as before. */
export async function isFinalizerPatch(c: Context<HttpEnv>): Promise<boolean> {
  const length = Number(c.req.header('content-length') ?? Number.NaN);
  if (c.req.method !== 'PATCH' || !(length <= MAX_PATCH_BYTES)) return false;
  try {
    return changesFinalizersAlone(parseJson(await c.req.raw.clone().text()));
  } catch {
    // Cut short, or no JSON: whoever reads it says so.
    return false;
  }
}

function changesFinalizersAlone(patch: JsonValue): boolean {
  if (isJsonArray(patch)) return patch.every(isAboutFinalizers);
  if (!isJsonObject(patch) || !isJsonObject(patch['metadata'])) return false;
  return (
    Object.keys(patch).every((field) => TOP_FIELDS.includes(field)) &&
    Object.keys(patch['metadata']).every((field) => METADATA_FIELDS.includes(field))
  );
}

function isAboutFinalizers(operation: JsonValue): boolean {
  if (!isJsonObject(operation)) return false;
  const { op, path } = operation;
  return op === 'test' || (typeof path === 'string' && FINALIZERS.test(path));
}

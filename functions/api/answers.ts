/** Answers with objects: their text as the store gave it, never parsed. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { lengthIfSmall } from '#http/compression.ts';
import { resourceJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';

const JSON_HEADERS = { 'Content-Type': 'application/json' };

export function answerObject(c: Context<HttpEnv>, row: ResourceRow, code: 200 | 201 | 202 = 200): Response {
  return c.body(`${resourceJson(row)}\n`, code, JSON_HEADERS);
}

export interface ListAnswer {
  readonly apiVersion: string;
  readonly kind: string;
  readonly rows: readonly ResourceRow[];
  /** The JSON text of one. @default as `resourceJson` gives it */
  readonly item?: ((row: ResourceRow) => string) | undefined;
  readonly cursor?: string | undefined;
  readonly continueToken?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

export function answerList(c: Context<HttpEnv>, list: ListAnswer): Response {
  const head = JSON.stringify({
    apiVersion: list.apiVersion,
    kind: `${list.kind}List`,
    metadata: { cursor: list.cursor, continue: list.continueToken, remainingItemCount: list.remainingItemCount },
  });
  const text = `${head.slice(0, -1)},"items":[${list.rows.map(list.item ?? resourceJson).join(',')}]}\n`;
  return c.body(text, 200, { ...JSON_HEADERS, ...lengthIfSmall(text) });
}

/** Adds a `Warning` header. @see https://www.rfc-editor.org/rfc/rfc7234#section-5.5 */
export function warn(c: Context<HttpEnv>, message: string): void {
  c.header('Warning', `199 plumbline ${JSON.stringify(message)}`, { append: true });
}

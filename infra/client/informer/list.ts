/** A list as a picture that a watch can go on from. */

import { callJson } from '#infra/client/call-json.ts';
import type { Caller } from '#infra/client/caller.ts';
import { ConnectionError } from '#infra/client/errors.ts';
import type { PlumblineObject } from '#infra/client/objects.ts';

/** Names a kind; what `defineKind` gives is one. */
export interface InformerKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
}

export interface ListRequest {
  readonly kind: InformerKind;
  /** @default all that the token may see */
  readonly tenant: string | undefined;
  readonly labelSelector: string | undefined;
  /** Objects of one page, 1,000 at most. */
  readonly pageSize: number;
  readonly signal: AbortSignal;
}

interface ListAnswer<Spec, Status> {
  readonly metadata: { readonly cursor?: string; readonly continue?: string };
  readonly items: readonly PlumblineObject<Spec, Status>[];
}

const TIMEOUT_MS = 30_000;

/**
 * Reads all pages. Later pages may show objects newer than the cursor: the watch from it tells of them again.
 * @returns the cursor. @throws {ConnectionError} also when the log is behind, so that there is none, before any page is taken.
 */
export async function readList<Spec, Status>(
  caller: Caller,
  { kind, tenant, labelSelector, pageSize, signal }: ListRequest,
  take: (objects: readonly PlumblineObject<Spec, Status>[]) => void,
): Promise<string> {
  let cursor: string | undefined;
  let next: string | undefined;
  do {
    const query = new URLSearchParams({ limit: String(pageSize) });
    if (labelSelector !== undefined) query.set('labelSelector', labelSelector);
    if (next !== undefined) query.set('continue', next);
    const { answer, headers } = await callJson(caller, `${path()}?${query.toString()}`, {
      signal,
      timeoutMs: TIMEOUT_MS,
    });
    const { metadata, items } = answer as ListAnswer<Spec, Status>;
    cursor ??= metadata.cursor;
    if (cursor === undefined) throw new ConnectionError(`the list has no cursor: ${headers.get('warning') ?? ''}`);
    take(items);
    next = metadata.continue;
  } while (next !== undefined);
  return cursor;

  function path(): string {
    const within = tenant === undefined ? '' : `namespaces/${tenant}/`;
    return `/apis/${kind.group}/${kind.version}/${within}${kind.plural}`;
  }
}

/** Query parameters of the resource API. Names that are not here are ignored: Kubernetes clients always add some. */

import type { Context } from 'hono';

import { askedVersion, type AskedVersion } from '#functions/api/list-version.ts';
import type { HttpEnv } from '#http/app.ts';
import { integerParameter, textParameter, wordParameter } from '#http/query.ts';
import { DRY_RUN_ALL } from '#core/delete-options.ts';
import { parseFieldSelector, type FieldSelector } from '#core/field-selector.ts';
import { parseLabelSelector, type LabelSelector } from '#core/label-selector.ts';
import type { ResourceStore, ResourceWrites } from '#core/ports/resources.ts';
import { StatusError } from '#core/status-error.ts';

export const MAX_LIST_LIMIT: number = 1000;
export const DEFAULT_LIST_LIMIT: number = 500;

export interface ListQuery {
  readonly limit: number;
  readonly continueToken: string | undefined;
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  readonly version: AskedVersion | undefined;
  /** As they were sent: a continue token is bound to them. */
  readonly texts: { readonly labelSelector?: string; readonly fieldSelector?: string };
}

/** Which page of a list is wanted. @throws {StatusError} BadRequest, naming the parameter. */
export function pageQuery(c: Context<HttpEnv>): Pick<ListQuery, 'limit' | 'continueToken'> {
  return {
    // As in Kubernetes, 0 is no wish; and who asks for more than a page has gets a page, and goes on with its token.
    limit: Math.min(
      integerParameter(c, 'limit', { min: 0, max: Number.MAX_SAFE_INTEGER }) || DEFAULT_LIST_LIMIT,
      MAX_LIST_LIMIT,
    ),
    continueToken: textParameter(c, 'continue'),
  };
}

/** @throws {StatusError} BadRequest: a list is no answer to who asks for a watch. */
export function refuseWatch(c: Context<HttpEnv>, instead: string): void {
  const watch = wordParameter(c, 'watch', ['true', 'false', '1', '0']);
  if (watch === 'true' || watch === '1') throw new StatusError('BadRequest', instead);
}

/** @throws {StatusError} BadRequest, naming the parameter. */
export function listQuery(c: Context<HttpEnv>): ListQuery {
  refuseWatch(c, 'lists cannot be watched here; GET /watch/v1/events, from the cursor of a list');
  const labelSelector = textParameter(c, 'labelSelector');
  const fieldSelector = textParameter(c, 'fieldSelector');
  const page = pageQuery(c);
  return {
    ...page,
    version: askedVersion(c, page.continueToken),
    labels: parseLabelSelector(labelSelector ?? ''),
    fields: parseFieldSelector(fieldSelector ?? ''),
    texts: {
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    },
  };
}

/**
 * Where a write goes: to the store, or to its dry run when the query asks for one.
 * @throws {StatusError} BadRequest: a dry run that was not one would be a write that nobody wanted.
 */
export function writesFor(c: Context<HttpEnv>, store: ResourceStore, isDryRun: boolean = false): ResourceWrites {
  const values = (c.req.queries('dryRun') ?? []).filter((value) => value !== '');
  const unknown = values.find((value) => value !== DRY_RUN_ALL);
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 100));
    throw new StatusError('BadRequest', `the query parameter "dryRun" is ${shown}; allowed is "${DRY_RUN_ALL}"`);
  }
  return isDryRun || values.length > 0 ? store.dryRun : store;
}

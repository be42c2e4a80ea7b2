/**
 * `resourceVersion` and `resourceVersionMatch` of a list, as Kubernetes clients send them. Every list is at least as new
 * as whatever was committed when it was asked for; so what is asked for "not older than" is what is answered anyway.
 *
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { textParameter } from '#http/query.ts';
import { isResourceVersion } from '#core/names.ts';
import type { ResourceStore } from '#core/ports/resources.ts';
import { invalid, StatusError, type StatusCause } from '#core/status-error.ts';

/** What a list shall not be older than. */
export interface AskedVersion {
  readonly resourceVersion: string;
  /** That state and no other. */
  readonly exact: boolean;
}

const MATCHES: readonly string[] = ['NotOlderThan', 'Exact'];

/**
 * Undefined when any state will do: no version, or `0`.
 * @throws {StatusError} BadRequest for what is no version, or one beside a continue token, whose list has its own;
 * Invalid for a match without a meaning.
 */
export function askedVersion(c: Context<HttpEnv>, continueToken: string | undefined): AskedVersion | undefined {
  const resourceVersion = textParameter(c, 'resourceVersion');
  const match = textParameter(c, 'resourceVersionMatch');
  if (match !== undefined) checkMatch(match, resourceVersion, continueToken);
  if (resourceVersion === undefined || resourceVersion === '0') return undefined;
  if (!isResourceVersion(resourceVersion)) {
    throw new StatusError(
      'BadRequest',
      `the query parameter "resourceVersion" is ${JSON.stringify(resourceVersion.slice(0, 100))}; allowed is one that was read`,
    );
  }
  if (continueToken !== undefined) {
    throw new StatusError(
      'BadRequest',
      'resourceVersion cannot be given with continue: the pages of a list are of one state',
    );
  }
  return { resourceVersion, exact: match === 'Exact' };
}

function checkMatch(match: string, resourceVersion: string | undefined, continueToken: string | undefined): void {
  const causes: StatusCause[] = [];
  if (!MATCHES.includes(match)) refuse('FieldValueNotSupported', `must be ${MATCHES.join(' or ')}`);
  if (resourceVersion === undefined) refuse('FieldValueForbidden', 'has no meaning without resourceVersion');
  if (continueToken !== undefined) refuse('FieldValueForbidden', 'has no meaning with continue');
  if (match === 'Exact' && resourceVersion === '0') refuse('FieldValueForbidden', '"Exact" has no meaning for "0"');
  if (causes.length > 0) throw invalid('ListOptions', causes);

  function refuse(reason: string, message: string): void {
    causes.push({ reason, message, field: 'resourceVersionMatch' });
  }
}

/**
 * @throws {StatusError} Timeout for a version that nothing has yet, with the cause by which Kubernetes clients know that
 * they have to list anew: a database that was restored gives old versions; Expired for an exact one.
 */
export async function assertNotOlder(store: ResourceStore, asked: AskedVersion | undefined): Promise<void> {
  if (asked === undefined) return;
  const { resourceVersion, exact } = asked;
  if (BigInt(resourceVersion) > (await store.newestVersion())) {
    const message = `Too large resource version: ${resourceVersion} was never given; list without one`;
    const causes = [{ reason: 'ResourceVersionTooLarge', message, field: 'resourceVersion' }];
    throw new StatusError('Timeout', message, { details: { causes, retryAfterSeconds: 1 } });
  }
  if (exact) {
    throw new StatusError(
      'Expired',
      `the state at exactly ${resourceVersion} is not kept: list with resourceVersionMatch=NotOlderThan, or without it`,
    );
  }
}

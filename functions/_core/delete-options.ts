/** The body of a DELETE. @see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/ */

import { isJsonArray, isJsonObject, type JsonObject } from '#core/json.ts';
import { readPreconditions } from '#core/object-validation.ts';
import type { Preconditions } from '#core/ports/resources.ts';
import { invalid, StatusError, type StatusCause } from '#core/status-error.ts';

export const PROPAGATION_POLICIES = ['Background', 'Foreground', 'Orphan'] as const;

/** What becomes of the dependents: they go after it, before it, or stay. */
export type PropagationPolicy = (typeof PROPAGATION_POLICIES)[number];

const FIELDS: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'preconditions',
  'propagationPolicy',
  'gracePeriodSeconds',
  'orphanDependents',
  'dryRun',
]);

/** The one value that there is: all stages of a write are run, and nothing is kept. */
export const DRY_RUN_ALL = 'All';

export interface DeleteOptions {
  readonly preconditions: Preconditions;
  readonly isDryRun: boolean;
  /** Absent: as the object's finalizers say, or Background. */
  readonly propagation?: PropagationPolicy;
}

/**
 * How a deletion is asked for. Unknown fields are refused: a misspelt condition would be none.
 * @throws {StatusError} Invalid with one cause per field; BadRequest for a dry run of no known kind.
 */
export function readDeleteOptions(body: JsonObject): DeleteOptions {
  const causes: StatusCause[] = [];
  for (const key of Object.keys(body)) {
    if (!FIELDS.has(key)) report('FieldValueForbidden', key.slice(0, 100), 'unknown field');
  }
  const { kind = 'DeleteOptions', propagationPolicy = null, orphanDependents = null, dryRun = null } = body;
  if (kind !== 'DeleteOptions') report('FieldValueInvalid', 'kind', 'must be "DeleteOptions"');
  const policy = PROPAGATION_POLICIES.find((known) => known === propagationPolicy);
  if (propagationPolicy !== null && policy === undefined) {
    report('FieldValueNotSupported', 'propagationPolicy', `must be one of ${PROPAGATION_POLICIES.join(', ')}`);
  }
  if (orphanDependents !== null && typeof orphanDependents !== 'boolean') {
    report('FieldValueTypeInvalid', 'orphanDependents', 'must be true or false');
  } else if (orphanDependents !== null && propagationPolicy !== null) {
    report('FieldValueInvalid', 'orphanDependents', 'cannot be set beside propagationPolicy');
  }
  const propagation = policy ?? (orphanDependents === null ? undefined : orphanDependents ? 'Orphan' : 'Background');
  const dryRuns = isJsonArray(dryRun) ? dryRun : [];
  if ((dryRun !== null && !isJsonArray(dryRun)) || dryRuns.some((value) => value !== DRY_RUN_ALL)) {
    throw new StatusError('BadRequest', `dryRun must be ["${DRY_RUN_ALL}"], or empty; nothing was deleted`);
  }
  const conditions = body['preconditions'] ?? {};
  if (!isJsonObject(conditions)) report('FieldValueTypeInvalid', 'preconditions', 'must be an object');
  const preconditions = isJsonObject(conditions) ? readPreconditions(conditions, 'preconditions', causes) : {};
  for (const key of isJsonObject(conditions) ? Object.keys(conditions) : []) {
    if (key !== 'uid' && key !== 'resourceVersion') {
      report('FieldValueForbidden', `preconditions.${key.slice(0, 100)}`, 'unknown field');
    }
  }
  if (causes.length > 0) throw invalid('DeleteOptions', causes);
  return { preconditions, isDryRun: dryRuns.length > 0, ...(propagation && { propagation }) };

  function report(reason: string, field: string, message: string): void {
    causes.push({ reason, message, field });
  }
}

/**
 * Which controller a status write is by. Kubernetes clients name themselves in `fieldManager`: where that is one of the
 * kind's controllers elsewhere, the write is its report; any other name is nobody's.
 */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { textParameter } from '#http/query.ts';
import type { Kind } from '#core/kind.ts';
import { isResourceVersion } from '#core/names.ts';
import type { Reporter } from '#core/ports/resources.ts';
import type { ControllerElsewhere } from '#core/reconcile/controller-elsewhere.ts';
import { StatusError } from '#core/status-error.ts';

export interface NamedReporter extends Reporter {
  readonly declared: ControllerElsewhere;
}

/** @throws {StatusError} BadRequest for a token that is none, or that no controller gives: it would fence nothing. */
export function reporterOf(c: Context<HttpEnv>, kind: Kind): NamedReporter | undefined {
  const manager = textParameter(c, 'fieldManager');
  const fencingToken = textParameter(c, 'fencingToken');
  const declared = kind.controllersElsewhere.find(({ id }) => id === manager);
  if (fencingToken === undefined) return declared && { declared, controller: declared.id };
  if (!declared) {
    const known = kind.controllersElsewhere.map(({ id }) => id).join(', ');
    throw new StatusError(
      'BadRequest',
      `the query parameter "fencingToken" needs a fieldManager that is a controller elsewhere of ${kind.kind}; ${known === '' ? 'it declares none' : `it declares ${known}`}`,
    );
  }
  // The same form and range: a decimal from 1 on that a bigint holds.
  if (!isResourceVersion(fencingToken)) {
    throw new StatusError(
      'BadRequest',
      `the query parameter "fencingToken" is ${JSON.stringify(fencingToken.slice(0, 100))}; allowed is a decimal from 1 to 2^63 - 1`,
    );
  }
  return { declared, controller: declared.id, fencingToken };
}

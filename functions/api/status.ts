/** PUT and PATCH of `/status`: what controllers report. Nothing else of the object changes. */

import type { Context } from 'hono';

import { answerObject } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { bounded } from '#functions/api/desired-state.ts';
import { aboutObject, objectNotFound, refuseStale } from '#functions/api/errors.ts';
import { fieldValidation, type FieldValidation } from '#functions/api/field-validation.ts';
import { ifMatch, withIfMatch } from '#functions/api/if-match.ts';
import { reporterOf, type NamedReporter } from '#functions/api/reporter.ts';
import { writesFor } from '#functions/api/parameters.ts';
import { readPatch } from '#functions/api/patches.ts';
import { patchObject } from '#functions/api/patching.ts';
import { requireResourceVersion } from '#functions/api/replace.ts';
import { objectTarget, type ObjectTarget } from '#functions/api/target.ts';
import type { HttpEnv } from '#http/app.ts';
import { authorize } from '#http/authorize.ts';
import { readJsonBody } from '#http/json-body.ts';
import type { MethodHandler } from '#http/methods.ts';
import { conditionCauses, settleConditions } from '#core/conditions.ts';
import { parseJsonObject, sameJson, type JsonObject } from '#core/json.ts';
import { validateKnownFields } from '#core/known-fields.ts';
import { invalidObject, readStatus } from '#core/object-validation.ts';
import { completeReport } from '#core/reconcile/controller-elsewhere.ts';
import type { JsonText, ResourceRow } from '#core/resource.ts';
import { keepSecrets } from '#core/secret-paths.ts';

/** Replaces the status, if the object still is what the controller read. */
export function replaceStatus(deps: ApiDeps): MethodHandler {
  const { store } = deps;
  return async (c) => {
    const { target, writes, fields, reporter } = statusWrite(c, deps);
    const { kind, scope, key, address } = target;
    const { preconditions: asked, status } = readStatus(await readJsonBody(c, 'application/json'), address);
    const preconditions = withIfMatch(asked, ifMatch(c));
    requireResourceVersion(c, address, preconditions);
    if (status === undefined) {
      throw invalidObject(address, [{ reason: 'FieldValueRequired', message: 'required', field: 'status' }]);
    }
    const current = await store.getForUpdate(scope, key);
    if (!current) throw objectNotFound(kind, key.name);
    refuseStale(target, current, preconditions);
    const wanted = keepSecrets('status', parseJsonObject(current.status), status, kind.redact);
    const text = checkedStatus(target, current, wanted, fields, reporter);
    const row = await aboutObject(target, writes.updateStatus(scope, key, text, preconditions, reporter));
    fields.warn();
    return answerObject(c, row);
  };
}

/** Changes the status by a patch. What the patch says of other parts does not count. */
export function patchStatus(deps: ApiDeps): MethodHandler {
  const { store } = deps;
  return async (c) => {
    const { target, writes, fields, reporter } = statusWrite(c, deps);
    const { kind, scope, key, address } = target;
    const patch = await readPatch(c, kind);
    const version = ifMatch(c);

    const row = await patchObject(store, target, async (current) => {
      const { preconditions: asked, status = {} } = readStatus(patch.apply(current).object, address);
      const preconditions = withIfMatch(asked, version);
      refuseStale(target, current, preconditions);
      const text = checkedStatus(target, current, status, fields, reporter);
      return { preconditions, write: (conditions) => writes.updateStatus(scope, key, text, conditions, reporter) };
    });
    fields.warn();
    return answerObject(c, row);
  };
}

/** Whose status it is, who may write it and how. @throws {StatusError} */
function statusWrite(c: Context<HttpEnv>, { store, kinds }: ApiDeps) {
  const target = objectTarget(c, kinds);
  const { kind, caller, key } = target;
  authorize(caller, 'status', kind, key.tenant);
  return { target, writes: writesFor(c, store), fields: fieldValidation(c), reporter: reporterOf(c, kind) };
}

/** The status as it will be stored; one that stays as it is stays word for word. */
function checkedStatus(
  { kind, address }: ObjectTarget,
  current: ResourceRow,
  reported: JsonObject,
  fields: FieldValidation,
  reporter: NamedReporter | undefined,
): JsonText {
  const stored: JsonObject = parseJsonObject(current.status);
  const wanted = settleConditions(stored, reporter ? completeReport(reporter.declared, stored, reported) : reported);
  if (sameJson(stored, wanted)) return current.status;
  const conditions = wanted['conditions'];
  // Those that raw SQL has written must not hold up the rest of the status.
  const wrong = sameJson(stored['conditions'], conditions) ? [] : conditionCauses(conditions, kind.redact);
  if (wrong.length > 0) throw invalidObject(address, wrong);
  const {
    document = wanted,
    causes,
    unknown = [],
  } = kind.status ? validateKnownFields('status', wanted, kind.status, kind.redact, fields.coversRefused) : {};
  fields.found(unknown);
  fields.refuse();
  if (causes) throw invalidObject(address, causes);
  return bounded('status', JSON.stringify(document));
}

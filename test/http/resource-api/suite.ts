/**
 * The resource API as its callers see it, black box: an address and tokens are all it needs. The deployment serves the
 * kinds of `test/http/kinds.ts`, and lets deleted tenants go within a second (`TENANT_GRACE_SECONDS=1`). It leaves its tenants behind; their names are never used twice.
 */

import { describe } from 'vitest';

import { bodies } from '#test/http/resource-api/bodies.ts';
import { creation } from '#test/http/resource-api/creation.ts';
import { deletion } from '#test/http/resource-api/deletion.ts';
import { dryRuns } from '#test/http/resource-api/dry-runs.ts';
import { fieldValidation } from '#test/http/resource-api/field-validation.ts';
import { finalizerWrites } from '#test/http/resource-api/finalizer-writes.ts';
import { identity } from '#test/http/resource-api/identity.ts';
import { ifMatch } from '#test/http/resource-api/if-match.ts';
import { jsonPatches } from '#test/http/resource-api/json-patches.ts';
import { discovery } from '#test/http/resource-api/discovery.ts';
import { headers } from '#test/http/resource-api/headers.ts';
import { immutableFields } from '#test/http/resource-api/immutable-fields.ts';
import { lists } from '#test/http/resource-api/lists.ts';
import { forcedDeletions } from '#test/http/resource-api/forced-deletions.ts';
import { mergePatches } from '#test/http/resource-api/merge-patches.ts';
import { openApi } from '#test/http/resource-api/openapi.ts';
import { namespaces } from '#test/http/resource-api/namespaces.ts';
import { owners } from '#test/http/resource-api/owners.ts';
import { replacement } from '#test/http/resource-api/replacement.ts';
import { reports } from '#test/http/resource-api/reports.ts';
import { requests } from '#test/http/resource-api/requests.ts';
import { secretValues } from '#test/http/resource-api/secret-values.ts';
import { secrets } from '#test/http/resource-api/secrets.ts';
import { sharedTenant } from '#test/http/resource-api/shared-tenant.ts';
import { status } from '#test/http/resource-api/status.ts';
import { tenants } from '#test/http/resource-api/tenants.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function resourceApiSuite(open: OpenTarget): void {
  describe('create', () => creation(open));
  describe('replace', () => replacement(open));
  describe('merge patch', () => mergePatches(open));
  describe('a JSON patch', () => jsonPatches(open));
  describe('changes of finalizers', () => finalizerWrites(open));
  describe('If-Match', () => ifMatch(open));
  describe('field validation', () => fieldValidation(open));
  describe('dry runs', () => dryRuns(open));
  describe('deletion', () => deletion(open));
  describe('owners', () => owners(open));
  describe('a forced deletion', () => forcedDeletions(open));
  describe('status', () => status(open));
  describe('reports of controllers elsewhere', () => reports(open));
  describe('lists', () => lists(open));
  describe('tenants', () => tenants(open));
  describe('namespaces', () => namespaces(open));
  describe('the shared tenant', () => sharedTenant(open));
  describe('secrets and schemas', () => secrets(open));
  describe('secret values', () => secretValues(open));
  describe('immutable fields', () => immutableFields(open));
  describe('identity', () => identity(open));
  describe('requests', () => requests(open));
  describe('headers', () => headers(open));
  describe('bodies', () => bodies(open));
  describe('discovery', () => discovery(open));
  describe('OpenAPI', () => openApi(open));
}

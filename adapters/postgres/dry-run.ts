/** Writes that are done, answered and undone: all that a write is refused for refuses them, and nothing stays. */

import type { Sql } from '#adapters/postgres/client.ts';
import { isKey } from '#adapters/postgres/resource-columns.ts';
import { resourceWrites } from '#adapters/postgres/resource-writes.ts';
import type { Undone } from '#adapters/postgres/undone.ts';
import type { Scope } from '#core/identity.ts';
import type { ResourceWrites } from '#core/ports/resources.ts';
import type { ResourceKey, ResourceRow } from '#core/resource.ts';

/** The same statements as those of real writes, each in a transaction that is rolled back. */
export function dryRunWrites(undone: Undone): ResourceWrites {
  return {
    async create(scope, resource) {
      const row = await undone(resource.tenant, scope, (sql) => resourceWrites(sql).create(scope, resource));
      return { ...row, resourceVersion: '' };
    },

    async update(scope, key, state, preconditions) {
      return undone(key.tenant, scope, async (sql) => {
        const before = await versionOf(sql, scope, key);
        return before(await resourceWrites(sql).update(scope, key, state, preconditions));
      });
    },

    async updateStatus(scope, key, status, preconditions, reporter) {
      return undone(key.tenant, scope, async (sql) => {
        const before = await versionOf(sql, scope, key);
        return before(await resourceWrites(sql).updateStatus(scope, key, status, preconditions, reporter));
      });
    },

    async delete(scope, key, preconditions, propagation) {
      return undone(key.tenant, scope, async (sql) => {
        const before = await versionOf(sql, scope, key);
        const { row, gone } = await resourceWrites(sql).delete(scope, key, preconditions, propagation);
        return { row: before(row), gone };
      });
    },

    async forceDelete(scope, key, preconditions, deed) {
      return undone(key.tenant, scope, async (sql) => {
        const before = await versionOf(sql, scope, key);
        const { row, gone } = await resourceWrites(sql).forceDelete(scope, key, preconditions, deed);
        return { row: before(row), gone };
      });
    },
  };
}

/** Gives a row the version that its object had: the one that the write took was never anybody's. */
async function versionOf(sql: Sql, scope: Scope, key: ResourceKey): Promise<(row: ResourceRow) => ResourceRow> {
  const [found] = await sql<{ resourceVersion: string }[]>`
    select r.resource_version::text as "resourceVersion" from plumbline.resource r where ${isKey(sql, scope, key)}
    for no key update`;
  return (row) => ({ ...row, resourceVersion: found?.resourceVersion ?? row.resourceVersion });
}

/** What lies in one database of a server: extensions, and what a role owns. */

import { sqlStateOf } from '#adapters/postgres/servers/errors.ts';
import { quoteName } from '#adapters/postgres/servers/quote.ts';
import { changeStatements, readSecurables } from '#adapters/postgres/servers/rights.ts';
import type { WorkSession } from '#adapters/postgres/servers/work-session.ts';
import { ExtensionRefused, type InsideDatabase } from '#core/ports/database-servers.ts';

/** insufficient_privilege, feature_not_supported, undefined_file, undefined_object: not trusted, or not there. */
const REFUSALS = new Set(['42501', '0A000', '58P01', '42704']);

/**
 * Rights of all roles on one thing are one row of a catalog, and PostgreSQL refuses whoever changes it beside another:
 * "tuple concurrently updated".
 */
const ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtextextended('plumbline rights', 0))";

export function insideDatabase(session: WorkSession, server: string, database: string): InsideDatabase {
  return {
    async extensions() {
      const rows = await session.run((sql) => sql<{ name: string }[]>`select extname as name from pg_extension`);
      return rows.map(({ name }) => name);
    },

    async createExtension(name, owner) {
      try {
        // In the schema where the database's own users look for it.
        await execute(
          `begin; set local role ${quoteName(owner)}; set local search_path = public; ` +
            `create extension if not exists ${quoteName(name)} cascade; commit`,
        );
      } catch (error) {
        await execute('rollback');
        if (!(error instanceof Error) || !REFUSALS.has(sqlStateOf(error.cause) ?? '')) throw error;
        throw new ExtensionRefused(
          `extension "${name}" cannot be had on server "${server}" without a superuser: ${messageOf(error.cause)}`,
          { cause: error },
        );
      }
    },

    async readRights(role, owner) {
      return session.run((sql) => readSecurables(sql, role, owner));
    },

    async changeRights(role, owner, changes) {
      // One message is one transaction.
      const statements = changes.flatMap((change) => changeStatements(role, owner, change));
      if (statements.length > 0) await execute([ONE_AT_A_TIME, ...statements].join('; '));
    },

    async disown(role, owner, { forGood }) {
      const statements = [ONE_AT_A_TIME, `reassign owned by ${quoteName(role)} to ${quoteName(owner)}`];
      // It also takes rights on databases, on all there are.
      if (forGood) statements.push(`drop owned by ${quoteName(role)}`);
      await execute(statements.join('; '));
    },
  };

  async function execute(statements: string): Promise<void> {
    if (statements !== '') await session.run((sql) => sql.unsafe(statements));
  }

  function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : `database "${database}"`;
  }
}

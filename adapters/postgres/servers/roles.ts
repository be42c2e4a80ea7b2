/** Roles of a server, by a session in its maintenance database. */

import { quoteName, quoteText } from '#adapters/postgres/servers/quote.ts';
import { scramVerifier } from '#adapters/postgres/servers/scram.ts';
import { sqlStateOf } from '#adapters/postgres/servers/errors.ts';
import type { WorkSession } from '#adapters/postgres/servers/work-session.ts';
import {
  isConfinedTo,
  leavingStatements,
  readRole,
  resettingStatements,
} from '#adapters/postgres/servers/role-catalog.ts';
import { NotOurs, RoleInUse, type RoleChange, type ServerRoles } from '#core/ports/database-servers.ts';

const DEPENDENT_OBJECTS = '2BP01';
const NO_LIMIT = -1;

export function serverRoles(session: WorkSession, server: string): ServerRoles {
  const self: ServerRoles = {
    async read(name, password) {
      return session.run((sql) => readRole(sql, name, password));
    },

    async isConfinedTo(name, database) {
      return session.run((sql) => isConfinedTo(sql, name, database));
    },

    async create({ name, comment, password }) {
      const secret = password === undefined ? '' : ` password ${quoteText(await scramVerifier(password))}`;
      // One message is one transaction.
      await execute(`create role ${quoteName(name)} login${secret}; ${commentOn(name, comment)}`);
      // Whoever is no superuser may administer what it made, and not yet act as it.
      if (!(await self.read(name))?.isUsable) await execute(`grant ${quoteName(name)} to current_user`);
    },

    async change(name, change) {
      const statements = [...(await statementsOf(name, change))];
      if (change.leave)
        statements.push(...(await session.run((sql) => leavingStatements(sql, name, change.leave ?? []))));
      if (change.resetSettings) statements.push(...(await session.run((sql) => resettingStatements(sql, name))));
      await execute(statements.join('; '));
    },

    async drop(name, comment) {
      const role = await self.read(name);
      if (!role) return;
      if (role.comment !== comment) {
        throw new NotOurs(`role "${name}" on server "${server}" does not bear our marker any more; it was left`);
      }
      try {
        await execute(`drop role ${quoteName(name)}`);
      } catch (error) {
        if (error instanceof Error && sqlStateOf(error.cause) === DEPENDENT_OBJECTS) {
          throw new RoleInUse(`${error.message}; revoke or reassign that, then it is dropped`, { cause: error });
        }
        throw error;
      }
    },
  };
  return self;

  async function execute(statements: string): Promise<void> {
    await session.run((sql) => sql.unsafe(statements));
  }
}

/** Only what differs is named: to name an attribute takes the right to change it. */
async function statementsOf(name: string, change: RoleChange): Promise<readonly string[]> {
  const { comment, password, take = [], letLogIn, unlimit, makeUsable } = change;
  const role = quoteName(name);
  const options = take.map((attribute) => `no${attribute.toLowerCase()}`);
  if (letLogIn) options.push('login');
  if (unlimit) options.push(`connection limit ${NO_LIMIT} valid until 'infinity'`);
  if (password !== undefined) options.push(`password ${quoteText(await scramVerifier(password))}`);
  const statements: string[] = [];
  if (options.length > 0) statements.push(`alter role ${role} ${options.join(' ')}`);
  if (comment !== undefined) statements.push(commentOn(name, comment));
  if (makeUsable) statements.push(`grant ${role} to current_user`);
  return statements;
}

function commentOn(name: string, comment: string | null): string {
  return `comment on role ${quoteName(name)} is ${comment === null ? 'null' : quoteText(comment)}`;
}

/** Roles of a server, by a session in its maintenance database. */

import { quoteName, quoteText } from '#adapters/postgres/servers/quote.ts';
import { scramVerifier } from '#adapters/postgres/servers/scram.ts';
import { sqlStateOf } from '#adapters/postgres/servers/errors.ts';
import type { WorkSession } from '#adapters/postgres/servers/work-session.ts';
import {
  NotOurs,
  RoleInUse,
  type ExternalRole,
  type RoleAttribute,
  type ServerRoles,
} from '#core/ports/database-servers.ts';

const DEPENDENT_OBJECTS = '2BP01';

interface RoleRow {
  readonly comment: string | null;
  readonly attributes: Readonly<Record<RoleAttribute, boolean>>;
  readonly can_log_in: boolean;
  readonly is_usable: boolean;
}

export function serverRoles(session: WorkSession, server: string): ServerRoles {
  return {
    read,

    async create({ name, comment, password }) {
      const secret = password === undefined ? '' : ` password ${quoteText(await scramVerifier(password))}`;
      // One message is one transaction.
      await execute(`create role ${quoteName(name)} login${secret}; ${commentOn(name, comment)}`);
      // Whoever is no superuser may administer what it made, and not yet act as it.
      if (!(await read(name))?.isUsable) await execute(`grant ${quoteName(name)} to current_user`);
    },

    async change(name, { comment, password, take = [], letLogIn, makeUsable }) {
      const options = take.map((attribute) => `no${attribute.toLowerCase()}`);
      if (letLogIn) options.push('login');
      if (password !== undefined) options.push(`password ${quoteText(await scramVerifier(password))}`);
      const statements: string[] = [];
      // Only what differs is named: to name an attribute takes the right to change it.
      if (options.length > 0) statements.push(`alter role ${quoteName(name)} ${options.join(' ')}`);
      if (comment !== undefined) statements.push(commentOn(name, comment));
      if (makeUsable) statements.push(`grant ${quoteName(name)} to current_user`);
      await execute(statements.join('; '));
    },

    async drop(name, comment) {
      const role = await read(name);
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

  async function read(name: string): Promise<ExternalRole | undefined> {
    const [row] = await session.run(
      (sql) => sql<RoleRow[]>`
      select shobj_description(oid, 'pg_authid') as comment, rolcanlogin as can_log_in,
        pg_has_role(oid, 'USAGE') as is_usable,
        jsonb_build_object('SUPERUSER', rolsuper, 'CREATEDB', rolcreatedb, 'CREATEROLE', rolcreaterole,
          'REPLICATION', rolreplication, 'BYPASSRLS', rolbypassrls) as attributes
      from pg_roles where rolname = ${name}`,
    );
    if (!row) return undefined;
    const attributes = Object.entries(row.attributes) as [RoleAttribute, boolean][];
    return {
      comment: row.comment,
      surplus: attributes.flatMap(([attribute, isHeld]) => (isHeld ? [attribute] : [])),
      canLogIn: row.can_log_in,
      isUsable: row.is_usable,
    };
  }

  async function execute(statements: string): Promise<void> {
    await session.run((sql) => sql.unsafe(statements));
  }
}

function commentOn(name: string, comment: string | null): string {
  return `comment on role ${quoteName(name)} is ${comment === null ? 'null' : quoteText(comment)}`;
}

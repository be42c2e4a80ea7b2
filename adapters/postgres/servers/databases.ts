/** Databases of a server, by a session in its maintenance database. */

import { checkedName, integerText, quoteName, quoteText } from '#adapters/postgres/servers/quote.ts';
import { sqlStateOf } from '#adapters/postgres/servers/errors.ts';
import type { WorkSession } from '#adapters/postgres/servers/work-session.ts';
import { DatabaseInUse, NotOurs, type DatabaseChange, type ServerDatabases } from '#core/ports/database-servers.ts';

const OBJECT_IN_USE = '55006';
const NO_LIMIT = -1;
/** Of a database whose DROP was interrupted: nobody can connect, nothing but another DROP is possible. */
const INVALID = -2;
const ALL_RIGHTS = ['CREATE', 'TEMPORARY', 'CONNECT'];

interface DatabaseRow {
  readonly comment: string | null;
  readonly owner: string;
  readonly connection_limit: number;
  readonly is_open: boolean;
  readonly owner_rights: readonly string[];
  readonly is_template: boolean;
  readonly allows_connections: boolean;
}

export function serverDatabases(session: WorkSession, server: string): ServerDatabases {
  return {
    async read(name) {
      const row = await readRow(name);
      if (!row) return undefined;
      return {
        comment: row.comment,
        owner: row.owner,
        connectionLimit: row.connection_limit < 0 ? undefined : row.connection_limit,
        isOpenToAll: row.is_open,
        ownerHasAll: ALL_RIGHTS.every((right) => row.owner_rights.includes(right)),
        isInvalid: row.connection_limit === INVALID,
        isTemplate: row.is_template,
        allowsConnections: row.allows_connections,
      };
    },

    async countSessions(name) {
      // Not ours, which are about to end; and none of the server's own workers, which give way. Of strangers' sessions
      // a login without pg_read_all_stats sees that they are there, and whose; not of what type.
      const [row] = await session.run(
        (sql) => sql<{ sessions: number }[]>`
        select count(*)::int as sessions from pg_stat_activity
        where datname = ${checkedName(name)} and usesysid is not null
          and coalesce(backend_type, 'client backend') = 'client backend'
          and not (usename = session_user and starts_with(application_name, 'plumbline '))`,
      );
      return row?.sessions ?? 0;
    },

    async create({ name, draft, owner, connectionLimit = NO_LIMIT, comment }) {
      await dropDraft(draft);
      const draftName = quoteName(draft);
      const limit = integerText(connectionLimit);
      // Nobody can be connected to this template; a session in the other one stalls whoever copies it.
      await execute(
        `create database ${draftName} template template0 owner ${quoteName(owner)} connection limit ${limit}`,
      );
      await execute(
        `comment on database ${draftName} is ${quoteText(comment)}; revoke all on database ${draftName} from public; ` +
          `alter database ${draftName} rename to ${quoteName(name)}`,
      );
    },

    async change(name, change) {
      await execute(statementsOf(name, change).join('; '));
    },

    async drop(name, comment, { force }) {
      const row = await readRow(name);
      if (!row) return;
      if (row.comment !== comment) {
        throw new NotOurs(`database "${name}" on server "${server}" does not bear our marker any more; it was left`);
      }
      if (row.is_template) await execute(endTemplate(name));
      try {
        await session.run((sql) => sql.unsafe(`drop database ${quoteName(name)}${force ? ' with (force)' : ''}`));
      } catch (error) {
        if (error instanceof Error && sqlStateOf(error.cause) === OBJECT_IN_USE) {
          throw new DatabaseInUse(error.message, { cause: error });
        }
        throw error;
      }
    },

    dropDraft,
  };

  async function readRow(name: string): Promise<DatabaseRow | undefined> {
    const [row] = await session.run(
      (sql) => sql<DatabaseRow[]>`
      select shobj_description(oid, 'pg_database') as comment, pg_get_userbyid(datdba) as owner,
        datconnlimit as connection_limit, datistemplate as is_template, datallowconn as allows_connections,
        exists (select from aclexplode(coalesce(datacl, acldefault('d', datdba))) where grantee = 0) as is_open,
        array(select privilege_type from aclexplode(coalesce(datacl, acldefault('d', datdba)))
          where grantee = datdba)::text[] as owner_rights
      from pg_database where datname = ${checkedName(name)}`,
    );
    return row;
  }

  async function dropDraft(draft: string): Promise<void> {
    if ((await readRow(draft))?.is_template) await execute(endTemplate(draft));
    await execute(`drop database if exists ${quoteName(draft)} with (force)`);
  }

  async function execute(statements: string): Promise<void> {
    await session.run((sql) => sql.unsafe(statements));
  }
}

function endTemplate(name: string): string {
  return `alter database ${quoteName(name)} is_template false`;
}

/** Rights are given last, by the owner that there is then. */
function statementsOf(name: string, change: DatabaseChange): readonly string[] {
  const database = `database ${quoteName(name)}`;
  const statements: string[] = [];
  if (change.owner !== undefined) statements.push(`alter ${database} owner to ${quoteName(change.owner)}`);
  if (change.connectionLimit !== undefined) {
    statements.push(`alter ${database} connection limit ${integerText(change.connectionLimit ?? NO_LIMIT)}`);
  }
  if (change.comment !== undefined) {
    statements.push(`comment on ${database} is ${change.comment === null ? 'null' : quoteText(change.comment)}`);
  }
  if (change.endTemplate) statements.push(endTemplate(name));
  if (change.allowConnections) statements.push(`alter ${database} allow_connections true`);
  if (change.closeToAll) statements.push(`revoke all on ${database} from public`);
  if (change.giveOwnerAll !== undefined) {
    statements.push(`grant all on ${database} to ${quoteName(change.giveOwnerAll)}`);
  }
  return statements;
}

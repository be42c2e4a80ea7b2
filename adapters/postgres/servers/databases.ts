/** Databases of a server, by a session in its maintenance database. */

import { quoteName, quoteText } from '#adapters/postgres/servers/quote.ts';
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
      };
    },

    async countSessions(name) {
      // Not ours, which are about to end; and none of the server's own workers, which give way.
      const [row] = await session.run(
        (sql) => sql<{ sessions: number }[]>`
        select count(*)::int as sessions from pg_stat_activity
        where datname = ${name} and backend_type = 'client backend' and not starts_with(application_name, 'plumbline ')`,
      );
      return row?.sessions ?? 0;
    },

    async create({ name, draft, owner, connectionLimit = NO_LIMIT, comment }) {
      await dropDraft(draft);
      const draftName = quoteName(draft);
      await execute(`create database ${draftName} owner ${quoteName(owner)} connection limit ${connectionLimit}`);
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
      try {
        await session.run((sql) => sql.unsafe(`drop database ${quoteName(name)}${force ? ' with (force)' : ''}`));
      } catch (error) {
        if (error instanceof Error && sqlStateOf(error.cause) === OBJECT_IN_USE) {
          throw new DatabaseInUse(`database "${name}" on server "${server}" has sessions`, { cause: error });
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
        datconnlimit as connection_limit,
        exists (select from aclexplode(coalesce(datacl, acldefault('d', datdba))) where grantee = 0) as is_open,
        array(select privilege_type from aclexplode(coalesce(datacl, acldefault('d', datdba)))
          where grantee = datdba)::text[] as owner_rights
      from pg_database where datname = ${name}`,
    );
    return row;
  }

  async function dropDraft(draft: string): Promise<void> {
    await execute(`drop database if exists ${quoteName(draft)} with (force)`);
  }

  async function execute(statements: string): Promise<void> {
    await session.run((sql) => sql.unsafe(statements));
  }
}

/** Rights are given last, by the owner that there is then. */
function statementsOf(name: string, change: DatabaseChange): readonly string[] {
  const database = `database ${quoteName(name)}`;
  const statements: string[] = [];
  if (change.owner !== undefined) statements.push(`alter ${database} owner to ${quoteName(change.owner)}`);
  if (change.connectionLimit !== undefined) {
    statements.push(`alter ${database} connection limit ${change.connectionLimit ?? NO_LIMIT}`);
  }
  if (change.comment !== undefined) {
    statements.push(`comment on ${database} is ${change.comment === null ? 'null' : quoteText(change.comment)}`);
  }
  if (change.closeToAll) statements.push(`revoke all on ${database} from public`);
  if (change.giveOwnerAll !== undefined) {
    statements.push(`grant all on ${database} to ${quoteName(change.giveOwnerAll)}`);
  }
  return statements;
}

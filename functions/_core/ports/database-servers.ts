/**
 * PORT. The PostgreSQL servers on which managed databases lie, by their configured names. Every method may be repeated
 * after a crash; none names an address or a password in its errors.
 */

export interface DatabaseServers {
  readonly names: readonly string[];
  /**
   * For one piece of work. It connects at the first call; a piece that has lost its connection never gets another.
   * Whoever opens it closes it.
   * @throws {UnknownServer}
   */
  open(server: string, work: ServerWork): DatabaseServer;
}

export interface ServerWork {
  /** The object that is worked for: one piece of work per uid at a time on each server. */
  readonly uid: string;
  /** Shown on the server with the uid: its log then tells whose statements they were. */
  readonly fencingToken: bigint;
  /** Ends the work, and its connections. */
  readonly signal: AbortSignal;
  /** Something else that only one piece of work at a time may touch; it waits for its turn. */
  readonly turn?: string | undefined;
}

/**
 * Methods throw {ServerBusy} while another piece of work has the uid or the turn, and {ServerUnavailable} when the server
 * cannot be reached. Nothing that a frozen process left behind can write any more once its successor works: the server
 * ends its connections, and with them its locks.
 */
export interface DatabaseServer {
  readonly host: string;
  readonly port: number;
  readonly databases: ServerDatabases;
  readonly roles: ServerRoles;
  /** Inside one of its databases; under the same locks, which it takes there too. */
  inside(database: string): InsideDatabase;
  /** What bears a comment that begins with this text. Complete, or it throws. */
  listMarked(prefix: string): Promise<readonly MarkedObject[]>;
  /** Gives the locks back. Never rejects. */
  close(): Promise<void>;
}

export interface MarkedObject {
  readonly class: 'database' | 'role';
  readonly name: string;
  readonly comment: string;
}

export interface ExternalDatabase {
  /** The marker's place. */
  readonly comment: string | null;
  readonly owner: string;
  /** Undefined: none of its own. */
  readonly connectionLimit: number | undefined;
  /** Whether everybody may connect or make temporary tables. */
  readonly isOpenToAll: boolean;
  /** Whether the owner has all rights on it. */
  readonly ownerHasAll: boolean;
  /** Dropping it was interrupted: nobody can enter it, and all that can be done is to drop it again. */
  readonly isInvalid: boolean;
}

export interface DatabaseChange {
  readonly comment?: string | null;
  readonly owner?: string;
  /** Null lifts it. */
  readonly connectionLimit?: number | null;
  readonly closeToAll?: boolean;
  /** The owner's name. */
  readonly giveOwnerAll?: string;
}

export interface NewDatabase {
  readonly name: string;
  /** It is made under this name, marked and closed, and only then given its own: no crash leaves one without marker. */
  readonly draft: string;
  readonly owner: string;
  readonly connectionLimit: number | undefined;
  readonly comment: string;
}

export interface ServerDatabases {
  read(name: string): Promise<ExternalDatabase | undefined>;
  /** Sessions that are connected to it. */
  countSessions(name: string): Promise<number>;
  /** A draft that is there already is taken for an unfinished one of ours. */
  create(database: NewDatabase): Promise<void>;
  change(name: string, change: DatabaseChange): Promise<void>;
  /**
   * Looks again whether the comment is still this one, and drops it; nothing happens when there is none.
   * @throws {NotOurs}, and {DatabaseInUse} without `force` while sessions are connected.
   */
  drop(name: string, comment: string, options: { readonly force: boolean }): Promise<void>;
  /** Drops what `create` left unfinished. */
  dropDraft(draft: string): Promise<void>;
}

export interface ExternalRole {
  /** The marker's place. */
  readonly comment: string | null;
  /** Attributes to be taken from a role that logs in and has no power beyond its grants, such as `SUPERUSER`. */
  readonly surplus: readonly RoleAttribute[];
  readonly canLogIn: boolean;
  /** Whether we may act as this role. */
  readonly isUsable: boolean;
}

export type RoleAttribute = 'SUPERUSER' | 'CREATEDB' | 'CREATEROLE' | 'REPLICATION' | 'BYPASSRLS';

export interface RoleChange {
  readonly comment?: string | null;
  /** Printable ASCII. Reaches the server, and so its log, as a verifier only. */
  readonly password?: string | undefined;
  readonly take?: readonly RoleAttribute[];
  readonly letLogIn?: boolean;
  readonly makeUsable?: boolean;
}

export interface ServerRoles {
  read(name: string): Promise<ExternalRole | undefined>;
  /** With its marker, in one step: a role that logs in and has no other power. */
  create(role: { readonly name: string; readonly comment: string; readonly password?: string }): Promise<void>;
  change(name: string, change: RoleChange): Promise<void>;
  /**
   * Looks again whether the comment is still this one, and drops it; nothing happens when there is none.
   * @throws {NotOurs}, and {RoleInUse} while it owns something or has rights anywhere.
   */
  drop(name: string, comment: string): Promise<void>;
}

/** Something that rights are given on. */
export interface Securable {
  /** The last three are what the database's owner will make one day. */
  readonly kind:
    | 'database'
    | 'schema'
    | 'table'
    | 'sequence'
    | 'membership'
    | 'future schemas'
    | 'future tables'
    | 'future sequences';
  /** As it stands in SQL, quoted. */
  readonly name: string;
  /** What the role holds itself, such as `SELECT`; `MEMBER` of a membership. */
  readonly held: readonly string[];
}

export interface RightsInDatabase {
  /** Everything of this database, whether the role holds something there or not. */
  readonly securables: readonly Securable[];
  /** Whether the role owns something in it. */
  readonly owns: boolean;
}

export interface RightsChange {
  readonly securable: Securable;
  readonly grant: readonly string[];
  readonly revoke: readonly string[];
}

export interface InsideDatabase {
  extensions(): Promise<readonly string[]>;
  /**
   * Made as the owner, so that only those are to be had that the server trusts, with what they need.
   * @throws {ExtensionRefused}
   */
  createExtension(name: string, owner: string): Promise<void>;
  /** A role that does not exist holds nothing. What extensions brought, and what roles beyond our reach own, is left out. */
  readRights(role: string, owner: string): Promise<RightsInDatabase>;
  /** All of them, or none. */
  changeRights(role: string, owner: string, changes: readonly RightsChange[]): Promise<void>;
  /** The owner gets what the role owns. With `forGood` every right that it has in this database, and on databases, goes. */
  disown(role: string, owner: string, options: { readonly forGood: boolean }): Promise<void>;
}

/** No server of this name is configured. */
export class UnknownServer extends Error {
  override readonly name = 'UnknownServer';
}

/** It cannot be reached, or did not answer in time. */
export class ServerUnavailable extends Error {
  override readonly name = 'ServerUnavailable';
}

/** Another piece of work is at it, or was and has not been ended by the server yet. */
export class ServerBusy extends Error {
  override readonly name = 'ServerBusy';
}

/** Its marker is not the expected one any more. */
export class NotOurs extends Error {
  override readonly name = 'NotOurs';
}

export class DatabaseInUse extends Error {
  override readonly name = 'DatabaseInUse';
}

/** Something depends on the role; the message says what. */
export class RoleInUse extends Error {
  override readonly name = 'RoleInUse';
}

/** The server has no extension of this name, or does not trust it. */
export class ExtensionRefused extends Error {
  override readonly name = 'ExtensionRefused';
}

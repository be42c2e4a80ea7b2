/**
 * PORT. The PostgreSQL servers on which managed databases lie, by their configured names. Every method may be repeated
 * after a crash; none names an address or a password in its errors. What cannot be a name, or a number, throws
 * {TypeError} before it reaches the server.
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
  /** Whoever may make databases may copy it, and nobody can drop it. */
  readonly isTemplate: boolean;
  /** Nobody can enter it at all otherwise. */
  readonly allowsConnections: boolean;
}

export interface DatabaseChange {
  readonly comment?: string | null;
  readonly owner?: string;
  /** Null lifts it. */
  readonly connectionLimit?: number | null;
  readonly closeToAll?: boolean;
  readonly endTemplate?: boolean;
  readonly allowConnections?: boolean;
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
  /** Sessions of others that are connected to it; also such as we may not look at. */
  countSessions(name: string): Promise<number>;
  /** A draft that is there already is taken for an unfinished one of ours. */
  create(database: NewDatabase): Promise<void>;
  change(name: string, change: DatabaseChange): Promise<void>;
  /**
   * Looks again whether the comment is still this one, and drops it; nothing happens when there is none.
   * @throws {NotOurs}, and {DatabaseInUse} while sessions are connected without `force`, or something else uses it. The
   * server waits for some seconds before it refuses, and lets nobody enter meanwhile.
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
  /** It expires, or takes only so many connections. */
  readonly isLimited: boolean;
  /** Whether settings of its own are there that we may take: any may make it act as another role, or lock it out. */
  readonly hasSettings: boolean;
  /** The roles that it is a member of. */
  readonly groups: readonly string[];
  /** Whether we may act as this role. */
  readonly isUsable: boolean;
  /** Whether its password is the one that was asked about; undefined where we may not know. */
  readonly hasPassword: boolean | undefined;
}

export type RoleAttribute = 'SUPERUSER' | 'CREATEDB' | 'CREATEROLE' | 'REPLICATION' | 'BYPASSRLS';

export interface RoleChange {
  readonly comment?: string | null;
  /** Printable ASCII. Reaches the server, and so its log, as a verifier only. */
  readonly password?: string | undefined;
  readonly take?: readonly RoleAttribute[];
  readonly letLogIn?: boolean;
  readonly unlimit?: boolean;
  /** Takes all that we may take. */
  readonly resetSettings?: boolean;
  /** Roles that it shall be a member of no more. */
  readonly leave?: readonly string[];
  readonly makeUsable?: boolean;
}

export interface ServerRoles {
  /** @param password to compare its own with. Only a superuser may know: others never see that it was changed. */
  read(name: string, password?: string): Promise<ExternalRole | undefined>;
  /**
   * Whether nobody but us is a member of this role, and all that it owns, or has rights on, is this database of its own
   * and what lies in it: then whoever has the database may have the role too.
   */
  isConfinedTo(name: string, database: string): Promise<boolean>;
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
  /** The role that gives rights on it, for it belongs to that one; null of a membership. */
  readonly giver: string | null;
  /**
   * What the role holds itself, such as `SELECT`; `MEMBER` of a membership. That it may pass it on counts for itself:
   * `GRANT OPTION FOR SELECT`, `ADMIN OPTION FOR MEMBER`.
   */
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

/** The message says by what. */
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

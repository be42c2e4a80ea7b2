/**
 * PORT. Where the keys lie that seal cursors, continue tokens and ack tokens: the database, a file, or a text. All servers
 * of an installation have the same ones.
 */

export interface CursorKey {
  /** From 0; each new key has a higher one, and none is used twice. */
  readonly id: number;
  /** 32 random bytes. */
  readonly key: Uint8Array;
}

export interface CursorKeyRing {
  /** At least one, in the order of their ids. All of them open. */
  readonly keys: readonly CursorKey[];
  /** The newest whose time to seal has come. Newer ones are there so that all servers know them before one uses them. */
  readonly sealingId: number;
}

export interface CursorKeys {
  /** The ring as it is now. @throws when it cannot be read, or is none: the message never holds a key. */
  read(): Promise<CursorKeyRing>;
}

/** A key as operators see it: never the key itself. */
export interface CursorKeyState {
  readonly id: number;
  readonly sealsFrom: Date;
}

/** `in use`: it seals, or its successor has only just begun to, or has not yet. */
export type Retirement = 'retired' | 'in use' | 'unknown';

/** What operators do with the keys of a place, while servers use them. */
export interface CursorKeyAdmin {
  /** In the order of their ids. */
  list(): Promise<readonly CursorKeyState[]>;

  /**
   * Adds a key that seals once this time has passed; the first of all seals at once.
   * @returns undefined when there are MAX_KEY_SPAN ids from the oldest to the newest, or another rotation was faster.
   */
  rotate(leadMs: number): Promise<CursorKeyState | undefined>;

  /** Removes a key: what it sealed is refused from then on. */
  retire(id: number): Promise<Retirement>;

  /** One new key in place of all others, at once: everything that was sealed before is refused. */
  renew(): Promise<CursorKeyState>;
}

/** Tokens name their key by one byte: half of what it can say is for the keys that there are, half for retired ones. */
export const MAX_KEY_SPAN: number = 128;

/** Between the keys of a database and those of its copy: the original may rotate so often since it was copied. */
export const RENEWAL_GAP: number = MAX_KEY_SPAN / 2;

/** Servers look for new keys this often. */
export const KEYS_READ_EVERY_MS: number = 2_000;

/** So long a successor has sealed before a key may be retired: then no server seals with that one any more. */
export const RETIRE_AFTER_MS: number = 5 * KEYS_READ_EVERY_MS;

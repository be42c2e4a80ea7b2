/** The variables that name the database, and a transaction pooler before it. */

import * as v from 'valibot';

/** What DATABASE_DIRECT_URL says where there is the pooler's address and no other. */
const NO_ADDRESS = 'none';
const ADDRESS = 'postgres://user:password@host:port/database';

/** Neither address: the embedded server. */
export interface DatabaseAddresses {
  /** Of the database itself: sessions, locks and LISTEN. */
  readonly databaseUrl: string | undefined;
  /** Of a transaction pooler before it, which all else goes through. */
  readonly poolerUrl: string | undefined;
}

/** Entries of a `v.object`. */
export function databaseVariables(): Readonly<Record<keyof Given, v.GenericSchema<string | undefined>>> {
  return {
    DATABASE_URL: v.optional(v.pipe(v.string(), v.check(isDatabaseUrl, ADDRESS))),
    DATABASE_DIRECT_URL: v.optional(
      v.pipe(
        v.string(),
        v.check(
          (value) => value === NO_ADDRESS || isDatabaseUrl(value),
          `${ADDRESS}, or ${NO_ADDRESS} where only the pooler of DATABASE_URL can be reached`,
        ),
      ),
    ),
  };
}

interface Given {
  readonly DATABASE_URL: string | undefined;
  readonly DATABASE_DIRECT_URL: string | undefined;
}

export function databaseAddresses({ DATABASE_URL, DATABASE_DIRECT_URL }: Given): DatabaseAddresses {
  if (DATABASE_DIRECT_URL === undefined) return { databaseUrl: DATABASE_URL, poolerUrl: undefined };
  const databaseUrl = DATABASE_DIRECT_URL === NO_ADDRESS ? undefined : DATABASE_DIRECT_URL;
  return { databaseUrl, poolerUrl: DATABASE_URL };
}

/** For statements that take no session. Undefined: the embedded server's, which only a running instance knows. */
export function statementUrl({ databaseUrl, poolerUrl }: DatabaseAddresses): string | undefined {
  return databaseUrl ?? poolerUrl;
}

/** A connection URL as it may be shown: without its password. */
export function maskDatabaseUrl(url: string): string {
  return (
    url
      // Up to the last @: a password that was not percent-encoded may hold any character.
      .replace(/(\/\/[^:@/?#]*):.*@/, '$1:***@')
      .replaceAll(/(password=)[^&\s]*/gi, '$1***')
  );
}

function isDatabaseUrl(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && (url.protocol === 'postgres:' || url.protocol === 'postgresql:') && url.hostname !== '';
}

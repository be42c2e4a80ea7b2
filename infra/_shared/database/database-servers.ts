/** `DATABASE_SERVERS`: the servers on which managed databases may lie, by name. */

import * as v from 'valibot';
import { postgresDatabaseServers } from '#adapters/postgres/servers/database-servers.ts';
import type { DatabaseServers } from '#core/ports/database-servers.ts';
import { dnsLabelProblem } from '#core/names.ts';

/** Names to URLs. */
export type DatabaseServerUrls = Readonly<Record<string, string>>;

const ALLOWED =
  'name=postgres://user:password@host:port/maintenance-database, several with white space between them; ' +
  'names are DNS labels, each once, and passwords percent-encoded';

/** An entry of a `v.object`. */
export function databaseServersVariable(): v.GenericSchema<string | undefined, DatabaseServerUrls> {
  return v.optional(
    v.pipe(
      v.string(),
      v.transform(splitPairs),
      v.check((pairs) => pairs.every(isServer) && new Set(pairs.map(([name]) => name)).size === pairs.length, ALLOWED),
      v.transform((pairs): DatabaseServerUrls => Object.fromEntries(pairs)),
    ),
    '',
  );
}

/** The variable's value as it may be shown: what cannot be read may be a piece of a password. */
export function maskDatabaseServers(value: string): string {
  return splitPairs(value)
    .map(([name, text]) => {
      const scheme = /^postgres(?:ql)?:\/\//.exec(text)?.[0];
      if (scheme === undefined) return '…';
      if (!URL.canParse(text)) return `${name}=${scheme}…`;
      const url = new URL(text);
      if (url.password !== '') url.password = '***';
      return `${name}=${url.href.replaceAll(/(password=)[^&\s]*/gi, '$1***')}`;
    })
    .join(' ');
}

/** The servers of an installation. @param urls by name; see `DATABASE_SERVERS`. */
export function databaseServers(urls: DatabaseServerUrls): DatabaseServers {
  return postgresDatabaseServers(new Map(Object.entries(urls)));
}

function splitPairs(value: string): readonly (readonly [name: string, url: string])[] {
  return value
    .split(/\s+/)
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      return equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    });
}

function isServer([name, text]: readonly [name: string, url: string]): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (
    dnsLabelProblem(name) === undefined &&
    (url?.protocol === 'postgres:' || url?.protocol === 'postgresql:') &&
    url.hostname !== '' &&
    url.pathname.length > 1
  );
}

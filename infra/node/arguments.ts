/** The arguments of `npm run serve`, and what its variables must say beside what they may. */

import { parseArgs } from 'node:util';
import type { Config } from '#infra/_shared/settings/config.ts';
import { statementUrl } from '#infra/_shared/settings/database-variables.ts';
import { PROCESS_ROLES, type ProcessRole } from '#infra/_shared/settings/process-role.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

export const SERVE_USAGE: string = [
  'usage: npm run serve -- --role api,watch,publish,reconcile',
  '  --role  what this process does, one or several by comma:',
  '          api        the resource API, on PORT and CONTROLLER_PORT',
  '          watch      the Watch and its acks, on PORT and CONTROLLER_PORT',
  '          publish    captured events to the log, and its retention',
  '          reconcile  the passes of kinds that are due',
  'Each has /healthz, /readyz and /metrics on OPS_PORT. README.md lists the variables.',
].join('\n');

/** @throws {StartError} that names the role and what is allowed. */
export function parseServeArguments(args: readonly string[]): ReadonlySet<ProcessRole> {
  const text = roleOf(args);
  if (text === undefined) throw wrong('--role is missing');
  return new Set(text.split(',').map((part) => parseRole(part.trim())));
}

export interface ServerConfig extends Config {
  /** For what takes no session. */
  readonly statementUrl: string;
}

/**
 * Nothing is made up here: neither a database nor a key for tokens.
 * @throws {StartError} with one line per variable that is not set.
 */
export function requireServerConfig(config: Config, roles: ReadonlySet<ProcessRole>): ServerConfig {
  const url = statementUrl(config);
  const { issuer } = config;
  const takesTokens = roles.has('api') || roles.has('watch');
  const missing = [
    ...(url === undefined ? ['DATABASE_URL is not set; it names the database: postgres://…'] : []),
    ...(takesTokens && !issuer
      ? [
          'TOKEN_ISSUER and TOKEN_JWKS_URL are not set; they name who issues the tokens that callers bring, and where its ' +
            'keys are. Only npm start makes a key of its own',
        ]
      : []),
  ];
  if (url === undefined || missing.length > 0) throw new StartError(missing.join('\n'));
  return { ...config, statementUrl: url };
}

function roleOf(args: readonly string[]): string | undefined {
  try {
    return parseArgs({ args: [...args], options: { role: { type: 'string' } } }).values.role;
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function parseRole(text: string): ProcessRole {
  const role = PROCESS_ROLES.find((known) => known === text);
  if (!role) throw wrong(`--role has "${text}"; allowed: ${PROCESS_ROLES.join(', ')}`);
  return role;
}

function wrong(message: string): StartError {
  return new StartError(`${message}\n${SERVE_USAGE}`);
}

/** The arguments of `npm run token`, checked. */

import { parseArgs } from 'node:util';
import { type Audience, ROLES, type Role, type TenantSet } from '#core/identity.ts';
import { dnsLabelProblem } from '#core/names.ts';
import type { TokenParams } from '#infra/_shared/tokens/development-identity.ts';
import { DURATION_FORM, parseDuration } from '#infra/_shared/command-line/duration.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

export const TOKEN_USAGE: string = [
  'usage: npm run -s token -- --role editor [--tenants acme,globex] [--audience private] [--ttl 1h] [--subject jane]',
  `  --role      ${ROLES.join(', ')}; several with commas`,
  '  --tenants   names with commas, or * for all (default: *)',
  '  --audience  public or private (default: private for the controller role, else public)',
  '  --ttl       a number and s, m, h or d (default: 1h)',
  '  --subject   the caller\'s name (default: "development")',
].join('\n');
const AUDIENCES: readonly Audience[] = ['public', 'private'];
const MAX_SUBJECT_CHARACTERS = 253;

/** @throws {StartError} that names the argument, its value and what is allowed. */
export function parseTokenArguments(args: readonly string[]): TokenParams {
  const values = parse(args);
  if (values.role === undefined) throw wrong('--role is missing');
  const roles = list(values.role).map(parseRole);
  const isForControllers = roles.every((role) => role === 'controller');
  return {
    subject: parseSubject(values.subject),
    audience: parseAudience(values.audience ?? (isForControllers ? 'private' : 'public')),
    roles,
    tenants: parseTenants(values.tenants),
    ttlSeconds: parseTtl(values.ttl),
  };
}

interface TokenValues {
  readonly role?: string | undefined;
  readonly tenants: string;
  readonly audience?: string | undefined;
  readonly ttl: string;
  readonly subject: string;
}

function parse(args: readonly string[]): TokenValues {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        role: { type: 'string' },
        tenants: { type: 'string', default: '*' },
        audience: { type: 'string' },
        ttl: { type: 'string', default: '1h' },
        subject: { type: 'string', default: 'development' },
      },
    });
    return values;
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function parseRole(text: string): Role {
  const role = ROLES.find((known) => known === text);
  if (!role) throw wrong(`--role is "${text}"; allowed: ${ROLES.join(', ')}`);
  return role;
}

function parseAudience(text: string): Audience {
  const audience = AUDIENCES.find((known) => known === text);
  if (!audience) throw wrong(`--audience is "${text}"; allowed: ${AUDIENCES.join(', ')}`);
  return audience;
}

function parseTenants(text: string): TenantSet {
  if (text === '*') return '*';
  const tenants = list(text);
  for (const tenant of tenants) {
    const problem = dnsLabelProblem(tenant);
    if (problem) throw wrong(`--tenants has "${tenant}"; a name ${problem}; * stands alone and means all`);
  }
  return tenants;
}

function parseTtl(text: string): number {
  const seconds = parseDuration(text);
  if (seconds === undefined) throw wrong(`--ttl is "${text}"; allowed: ${DURATION_FORM}`);
  return seconds;
}

function parseSubject(text: string): string {
  if (text.trim() === '' || text.length > MAX_SUBJECT_CHARACTERS) {
    throw wrong(`--subject is "${text}"; allowed: 1 to ${MAX_SUBJECT_CHARACTERS} characters`);
  }
  return text;
}

function list(text: string): readonly string[] {
  return text.split(',').map((part) => part.trim());
}

function wrong(message: string): StartError {
  return new StartError(`${message}\n${TOKEN_USAGE}`);
}

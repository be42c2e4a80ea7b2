/** The arguments of `npm run block` and `npm run unblock`, checked. */

import { parseArgs } from 'node:util';
import { dnsLabelProblem } from '#core/names.ts';
import type { TokenBlock } from '#core/token-block.ts';
import { DURATION_FORM, parseDuration } from '#infra/_shared/command-line/duration.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

export const BLOCK_USAGE: string = [
  'usage: npm run -s block -- --subject jane | --token-id ID [--tenant acme] --reason "laptop stolen" [--for 8h]',
  '  --subject   whose tokens are blocked: the claim "sub"',
  '  --token-id  the one token that is blocked: the claim "jti"',
  '  --tenant    the tenant that is taken from them (default: everything)',
  '  --reason    why, for other operators',
  '  --for       a number and s, m, h or d (default: until it is unblocked)',
].join('\n');

export const UNBLOCK_USAGE: string =
  'usage: npm run -s unblock -- --subject jane | --token-id ID [--tenant acme]; npm run -s blocks lists them';

const MAX_NAME_CHARACTERS = 253;
const MAX_REASON_CHARACTERS = 1_000;

export interface BlockArguments {
  readonly block: TokenBlock;
  readonly reason: string;
  /** Absent: until it is removed. */
  readonly forSeconds: number | undefined;
}

/** @throws {StartError} that names the argument, its value and what is allowed. */
export function parseBlockArguments(args: readonly string[]): BlockArguments {
  const { reason, for: duration, ...names } = parse(args, BLOCK_USAGE);
  const block = parseNames(names, BLOCK_USAGE);
  if (reason === undefined) throw wrong('--reason is missing', BLOCK_USAGE);
  if (reason.trim() === '' || reason.length > MAX_REASON_CHARACTERS) {
    throw wrong(`--reason is "${reason}"; allowed: 1 to ${MAX_REASON_CHARACTERS} characters`, BLOCK_USAGE);
  }
  const forSeconds = duration === undefined ? undefined : parseDuration(duration);
  if (duration !== undefined && forSeconds === undefined) {
    throw wrong(`--for is "${duration}"; allowed: ${DURATION_FORM}`, BLOCK_USAGE);
  }
  return { block, reason, forSeconds };
}

/** @throws {StartError} that names the argument, its value and what is allowed. */
export function parseUnblockArguments(args: readonly string[]): TokenBlock {
  const { reason, for: duration, ...names } = parse(args, UNBLOCK_USAGE);
  if (reason !== undefined || duration !== undefined) throw wrong('a block is removed without more', UNBLOCK_USAGE);
  return parseNames(names, UNBLOCK_USAGE);
}

interface Names {
  readonly subject?: string | undefined;
  readonly 'token-id'?: string | undefined;
  readonly tenant?: string | undefined;
}

interface Values extends Names {
  readonly reason?: string | undefined;
  readonly for?: string | undefined;
}

function parse(args: readonly string[], usage: string): Values {
  const text = { type: 'string' } as const;
  try {
    const options = { subject: text, 'token-id': text, tenant: text, reason: text, for: text };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw wrong(messageOf(error), usage);
  }
}

function parseNames({ subject, 'token-id': tokenId, tenant }: Names, usage: string): TokenBlock {
  if ((subject === undefined) === (tokenId === undefined)) {
    throw wrong('one of --subject and --token-id is needed', usage);
  }
  for (const [name, value] of Object.entries({ subject, 'token-id': tokenId })) {
    if (value === undefined || (value.trim() !== '' && value.length <= MAX_NAME_CHARACTERS)) continue;
    throw wrong(`--${name} is "${value}"; allowed: 1 to ${MAX_NAME_CHARACTERS} characters`, usage);
  }
  const problem = tenant === undefined ? undefined : dnsLabelProblem(tenant);
  if (problem !== undefined) throw wrong(`--tenant is "${tenant}"; a name ${problem}`, usage);
  const where = tenant === undefined ? {} : { tenant };
  return subject === undefined ? { tokenId: tokenId ?? '', ...where } : { subject, ...where };
}

function wrong(message: string, usage: string): StartError {
  return new StartError(`${message}\n${usage}`);
}

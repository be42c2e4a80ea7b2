/** What a member asks for: the parameters of `GET /watch/v1/events` that go with `group`. */

import type { Context } from 'hono';

import { dnsLabelProblem } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';
import type { HttpEnv } from '#http/app.ts';
import { integerParameter, textParameter, wordParameter } from '#http/query.ts';
import type { LaneLimits } from '#functions/watch/groups/member/lane.ts';

export interface GroupRequest {
  readonly name: string;
  /** Where the group begins when there is none yet. */
  readonly start: 'earliest' | 'now';
  readonly limits: LaneLimits;
  readonly ackWaitMs: number;
}

export const GROUP_PARAMETERS: readonly string[] = ['group', 'start', 'window', 'ackWaitMs', 'maxAttempts'];

const WINDOW = { min: 1, max: 1024, default: 64 };
const ACK_WAIT_MS = { min: 1_000, max: 3_600_000, default: 30_000 };
const MAX_ATTEMPTS = { min: 1, max: 1_000, default: 16 };

/** Undefined without a group. @throws {StatusError} BadRequest naming the parameter. */
export function groupParameters(c: Context<HttpEnv>): GroupRequest | undefined {
  const name = textParameter(c, 'group');
  if (name === undefined) {
    const lost = GROUP_PARAMETERS.find((parameter) => c.req.query(parameter) !== undefined);
    if (lost !== undefined) throw excluded(lost, 'is of groups: it goes with "group" only');
    return undefined;
  }
  assertGroupName(name, 'the query parameter "group"');
  if (c.req.query('from') !== undefined) throw excluded('from', 'excludes "group": a group goes on where its acks are');
  if (c.req.query('initial') !== undefined) {
    throw excluded('initial', 'excludes "group": list the state, and have the group start before or at it');
  }
  return {
    name,
    start: wordParameter(c, 'start', ['earliest', 'now']) ?? 'earliest',
    limits: {
      window: integerParameter(c, 'window', WINDOW) ?? WINDOW.default,
      maxAttempts: integerParameter(c, 'maxAttempts', MAX_ATTEMPTS) ?? MAX_ATTEMPTS.default,
    },
    ackWaitMs: integerParameter(c, 'ackWaitMs', ACK_WAIT_MS) ?? ACK_WAIT_MS.default,
  };
}

/** @throws {StatusError} BadRequest. */
export function assertGroupName(name: string, where: string): void {
  const problem = dnsLabelProblem(name);
  if (problem === undefined) return;
  throw new StatusError('BadRequest', `${where} is ${JSON.stringify(name.slice(0, 100))}: it ${problem}`);
}

function excluded(parameter: string, problem: string): StatusError {
  return new StatusError('BadRequest', `the query parameter "${parameter}" ${problem}`);
}

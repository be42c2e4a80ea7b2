/** `POST /watch/v1/acks`: what members have processed, or refuse, by the ids that it came with. At any process. */

import type { Context } from 'hono';

import type { Acked, AckTokens } from '#core/ack-token.ts';
import { type Audience, visibleTo } from '#core/identity.ts';
import type { Ack, Acker, AckResult, Nack, WatchGroups } from '#core/ports/watch-groups.ts';
import { StatusError } from '#core/status-error.ts';
import type { HttpEnv } from '#http/app.ts';
import { readJsonBody } from '#http/json-body.ts';
import { parseAckRequest } from '#functions/watch/groups/requests/ack-request.ts';
import type { GroupCoordinator } from '#functions/watch/groups/coordinator.ts';

export interface AnswerAcksDeps {
  readonly hub: { readonly groups: GroupCoordinator };
  readonly groups: WatchGroups;
  readonly ackTokens: AckTokens;
  readonly onFencedAcks: (count: number) => void;
}

type DeadLetterAck = Extract<Acked, { of: 'deadLetter' }>;

/** A token of a key that is not kept any more is as good as one of an older fence: what it was of comes again. */
interface Opened<Lane extends Ack> {
  readonly lanes: readonly Lane[];
  readonly deadLetters: readonly DeadLetterAck[];
  /** What becomes of each token, in their order. */
  merge(lanes: readonly AckResult[], deadLetters: readonly AckResult[]): readonly AckResult[];
}

/**
 * 200 with what became of each token, acks first. @throws {StatusError} BadRequest for a body or a token that is none;
 * Fenced when all are, NotFound when all are Unknown: then nothing was done.
 */
export async function answerAcks(deps: AnswerAcksDeps, c: Context<HttpEnv>): Promise<Response> {
  const caller = c.get('caller');
  const { audience } = caller;
  const { acks, nacks } = parseAckRequest(await readJsonBody(c, 'application/json'));
  const open = (token: string, path: string): Acked | undefined => openToken(deps.ackTokens, token, audience, path);
  const opened = sort(acks.map((token, index) => open(token, `acks[${index}]`)));
  const refused = sort(
    nacks.map(({ token, delayMs }, index) => {
      const acked = open(token, `nacks[${index}].token`);
      return acked?.of === 'lane' ? { ...acked, delayMs } : acked;
    }),
  );
  const acker = { audience, owner: caller.subject, tenants: visibleTo(caller).tenants };
  const results = [...(await confirm(deps, acker, opened)), ...(await refuse(deps, acker, refused))];
  deps.onFencedAcks(results.filter((result) => result === 'Fenced').length);
  return c.json({ results: answersOf(results) });
}

async function confirm(
  { hub, groups }: AnswerAcksDeps,
  acker: Acker,
  { lanes, deadLetters, merge }: Opened<Ack>,
): Promise<readonly AckResult[]> {
  const [ofLanes, ofDeadLetters] = await Promise.all([
    groups.ack(acker, lanes),
    groups.ackDeadLetters(acker, deadLetters),
  ]);
  hub.groups.confirmed(lanes.filter((_, index) => ofLanes[index] === 'Acked'));
  hub.groups.deadLettersDone(deadLetters.filter((_, index) => ofDeadLetters[index] === 'Acked'));
  return merge(ofLanes, ofDeadLetters);
}

async function refuse(
  { hub, groups }: AnswerAcksDeps,
  acker: Acker,
  { lanes, deadLetters, merge }: Opened<Nack>,
): Promise<readonly AckResult[]> {
  if (lanes.length > 0) await hub.groups.noteDeliveries();
  const [ofLanes, ofDeadLetters] = await Promise.all([
    groups.nack(acker, lanes),
    groups.nackDeadLetters(acker, deadLetters),
  ]);
  hub.groups.begunAnew(lanes.filter((_, index) => ofLanes[index] === 'Acked'));
  hub.groups.deadLettersDone(deadLetters.filter((_, index) => ofDeadLetters[index] === 'Acked'));
  return merge(ofLanes, ofDeadLetters);
}

function openToken(tokens: AckTokens, token: string, audience: Audience, path: string): Acked | undefined {
  const opened = tokens.open(token, audience);
  if (opened === 'malformed') {
    throw new StatusError('BadRequest', `${path} is no ack token of this listener; send the id of an event as it came`);
  }
  return opened === 'retired' ? undefined : opened;
}

function sort<Lane extends Ack>(
  opened: readonly ((Lane & { readonly of: 'lane' }) | DeadLetterAck | undefined)[],
): Opened<Lane> {
  const lanes = opened.filter((acked) => acked?.of === 'lane');
  const deadLetters = opened.filter((acked) => acked?.of === 'deadLetter');
  return {
    lanes,
    deadLetters,
    merge(ofLanes, ofDeadLetters) {
      const next = { lane: ofLanes.values(), deadLetter: ofDeadLetters.values() };
      return opened.map((acked) => (acked ? (next[acked.of].next().value ?? 'Unknown') : 'Fenced'));
    },
  };
}

/** @throws {StatusError} Fenced, NotFound. */
function answersOf(results: readonly AckResult[]): readonly { readonly status: AckResult }[] {
  const answers = results.map((status) => ({ status }));
  const areAll = (result: AckResult): boolean => results.length > 0 && results.every((each) => each === result);
  if (areAll('Fenced')) {
    throw new StatusError(
      'Fenced',
      'the lanes have begun anew since these were delivered, here or at another member: they are delivered again, and ' +
        'confirmed by the ids that they come with then',
      { details: { results: answers } },
    );
  }
  if (areAll('Unknown')) throw new StatusError('NotFound', 'no group of yours has delivered any of these');
  return answers;
}

/**
 * Ack tokens: which delivery a member of a group confirms. Clients hold them as opaque text, the `id:` of what they were
 * sent, and give them to any process of the installation. A token opens only for the audience that it was sealed for;
 * whose group it is of is asked where it is used.
 *
 * Each lane's tokens are a series: the plaintext is of a point of the lane, the number is how far behind it the event
 * lies. A token of a dead letter is sealed by itself.
 *
 * Plaintext, as varints: what it is of (0: a lane, 1: a dead letter), the group and the stream; then the lane, the fence, the
 * seq and the position as its signed distance from the seq; or the dead letter's id and fence.
 */

import type { Audience } from '#core/identity.ts';
import { LANES_PER_STREAM } from '#core/lane.ts';
import type { LogPoint } from '#core/ports/event-log.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import type { Ack, DeadLetterRef, HeldLane } from '#core/ports/watch-groups.ts';
import { createVarintReader, writeVarint } from '#core/varint.ts';

/** What a token confirms: a point of a lane, or a dead letter that was delivered again. */
export type Acked = (Ack & { readonly of: 'lane' }) | (DeadLetterRef & { readonly of: 'deadLetter' });

/** Above the largest token: the key of a series and seven numbers of ten bytes, sealed, and a block. */
const MAX_TOKEN_CHARACTERS = 180;
const MAX_NUMBER = 2n ** 32n - 1n;
const FORMAT_VERSION = 1;
const MAX_BIGINT = 2n ** 63n - 1n;

const OF_LANE = 0n;
const OF_DEAD_LETTER = 1n;

export interface AckTokens {
  /** Makes the tokens of a lane, while its fence stays: of its points, best in their order. */
  ofLane(held: HeldLane, audience: Audience): (point: LogPoint) => string;

  /** The token of a dead letter that is delivered again. */
  ofDeadLetter(deadLetter: DeadLetterRef, audience: Audience): string;

  /**
   * `malformed` for anything that was not sealed for this audience, a cursor among it; `retired` when its key left the
   * ring: what it was to confirm is delivered again.
   */
  open(token: string, audience: Audience): Acked | 'malformed' | 'retired';
}

export function createAckTokens(box: SecretBox): AckTokens {
  return {
    ofLane(held, audience) {
      let first: LogPoint | undefined;
      let sealNumber: ((number: number) => string) | undefined;
      return function tokenOf(point) {
        if (!first || !sealNumber || !isInReach(point, first)) {
          first = point;
          sealNumber = box.sealSeries(encodeLane(held, point), bindingOf(audience));
        }
        return sealNumber(Number(point.seq - first.seq));
      };
    },

    ofDeadLetter: ({ group, stream, id, fence }, audience) =>
      box.seal(encode(OF_DEAD_LETTER, group, stream, id, fence), bindingOf(audience)),

    open(token, audience) {
      if (token.length > MAX_TOKEN_CHARACTERS) return 'malformed';
      const opened = token.includes('.')
        ? box.openSeries(token, bindingOf(audience))
        : box.open(token, bindingOf(audience));
      if (typeof opened === 'string') return opened;
      const acked = 'number' in opened ? decodeLane(opened.plaintext, BigInt(opened.number)) : decodeDeadLetter(opened);
      return acked ?? 'malformed';
    },
  };
}

function bindingOf(audience: Audience): string {
  return `plumbline/ack/${FORMAT_VERSION}/${audience}`;
}

/** Positions run beside the seqs, but for where a log has other things in between. */
function isInReach(point: LogPoint, first: LogPoint): boolean {
  const number = point.seq - first.seq;
  return number >= 0n && number <= MAX_NUMBER && point.position - first.position === number;
}

function encodeLane({ group, stream, lane, fence }: HeldLane, { seq, position }: LogPoint): Uint8Array {
  const distance = position - seq;
  const zigzag = distance < 0n ? -2n * distance - 1n : 2n * distance;
  return encode(OF_LANE, group, stream, BigInt(lane), fence, seq, zigzag);
}

function encode(...numbers: readonly bigint[]): Uint8Array {
  const bytes: number[] = [];
  for (const number of numbers) writeVarint(bytes, number);
  return Uint8Array.from(bytes);
}

function decodeLane(bytes: Uint8Array, number: bigint): Acked | undefined {
  const numbers = decode(bytes);
  if (numbers?.length !== 7) return undefined;
  const [of, group = 0n, stream = 0n, lane = 0n, fence = 0n, first = 0n, zigzag = 0n] = numbers;
  const seq = first + number;
  const position = seq + (zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n);
  if (of !== OF_LANE || lane >= BigInt(LANES_PER_STREAM)) return undefined;
  if (![group, stream, fence, seq, position].every(isNumber)) return undefined;
  return { of: 'lane', group, stream, lane: Number(lane), fence, point: { seq, position } };
}

function decodeDeadLetter(bytes: Uint8Array): Acked | undefined {
  const numbers = decode(bytes);
  if (numbers?.length !== 5) return undefined;
  const [of, group = 0n, stream = 0n, id = 0n, fence = 0n] = numbers;
  if (of !== OF_DEAD_LETTER || ![group, stream, id, fence].every(isNumber)) return undefined;
  return { of: 'deadLetter', group, stream, id, fence };
}

function decode(bytes: Uint8Array): readonly bigint[] | undefined {
  const reader = createVarintReader(bytes);
  const numbers: bigint[] = [];
  while (!reader.atEnd()) {
    const number = reader.next();
    if (number === undefined) return undefined;
    numbers.push(number);
  }
  return numbers;
}

function isNumber(value: bigint): boolean {
  return value >= 0n && value <= MAX_BIGINT;
}

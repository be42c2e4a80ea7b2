/**
 * Ack tokens: which delivery a member of a group confirms. Clients hold them as opaque text, the `id:` of what they were
 * sent, and give them to any process of the installation. A token opens only for the audience that it was sealed for;
 * whose group it is of is asked where it is used.
 *
 * Plaintext, as varints: what it is of (0: a lane, 1: a dead letter), the group and the stream; then the lane, the fence, the
 * seq and the position as its signed distance from the seq; or the dead letter's id and fence.
 */

import type { Audience } from '#core/identity.ts';
import { LANES_PER_STREAM } from '#core/lane.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import type { Ack, DeadLetterRef } from '#core/ports/watch-groups.ts';
import { createVarintReader, writeVarint } from '#core/varint.ts';

/** What a token confirms: a point of a lane, or a dead letter that was delivered again. */
export type Acked = (Ack & { readonly of: 'lane' }) | (DeadLetterRef & { readonly of: 'deadLetter' });

/** Above the largest token: seven numbers of ten bytes, sealed. */
const MAX_TOKEN_CHARACTERS = 160;
const FORMAT_VERSION = 1;
const MAX_BIGINT = 2n ** 63n - 1n;

const OF_LANE = 0n;
const OF_DEAD_LETTER = 1n;

export interface AckTokens {
  /** The token's text. The same input gives another text each time. */
  seal(acked: Acked, audience: Audience): string;

  /**
   * `malformed` for anything that was not sealed for this audience, a cursor among it; `retired` when its key left the
   * ring: what it was to confirm is delivered again.
   */
  open(token: string, audience: Audience): Acked | 'malformed' | 'retired';
}

export function createAckTokens(box: SecretBox): AckTokens {
  return {
    seal: (acked, audience) => box.seal(encode(acked), bindingOf(audience)),

    open(token, audience) {
      if (token.length > MAX_TOKEN_CHARACTERS) return 'malformed';
      const opened = box.open(token, bindingOf(audience));
      return typeof opened === 'string' ? opened : (decode(opened) ?? 'malformed');
    },
  };
}

function bindingOf(audience: Audience): string {
  return `plumbline/ack/${FORMAT_VERSION}/${audience}`;
}

function encode(acked: Acked): Uint8Array {
  const bytes: number[] = [];
  const { group, stream, fence } = acked;
  if (acked.of === 'deadLetter') {
    for (const number of [OF_DEAD_LETTER, group, stream, acked.id, fence]) writeVarint(bytes, number);
    return Uint8Array.from(bytes);
  }
  const { lane, point } = acked;
  const distance = point.position - point.seq;
  const zigzag = distance < 0n ? -2n * distance - 1n : 2n * distance;
  for (const number of [OF_LANE, group, stream, BigInt(lane), fence, point.seq, zigzag]) writeVarint(bytes, number);
  return Uint8Array.from(bytes);
}

function decode(bytes: Uint8Array): Acked | undefined {
  const reader = createVarintReader(bytes);
  const numbers: bigint[] = [];
  while (!reader.atEnd()) {
    const number = reader.next();
    if (number === undefined) return undefined;
    numbers.push(number);
  }
  const [of, group = 0n, stream = 0n, ...rest] = numbers;
  if (of === OF_DEAD_LETTER && rest.length === 2) {
    const [id = 0n, fence = 0n] = rest;
    return [group, stream, id, fence].every(isNumber) ? { of: 'deadLetter', group, stream, id, fence } : undefined;
  }
  if (of !== OF_LANE || rest.length !== 4) return undefined;
  const [lane = 0n, fence = 0n, seq = 0n, zigzag = 0n] = rest;
  const position = seq + (zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n);
  if (![group, stream, fence, seq, position].every(isNumber) || lane >= BigInt(LANES_PER_STREAM)) return undefined;
  return { of: 'lane', group, stream, lane: Number(lane), fence, point: { seq, position } };
}

function isNumber(value: bigint): boolean {
  return value >= 0n && value <= MAX_BIGINT;
}

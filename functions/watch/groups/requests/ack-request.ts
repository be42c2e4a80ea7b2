/** The body of `POST /watch/v1/acks`. */

import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import { StatusError } from '#core/status-error.ts';
import { assertFields } from '#http/json-body.ts';

export interface AckRequest {
  readonly acks: readonly string[];
  readonly nacks: readonly NackRequest[];
}

export interface NackRequest {
  readonly token: string;
  readonly delayMs: number;
}

const MAX_TOKENS = 1_000;
const MAX_DELAY_MS = 3_600_000;

/** @throws {StatusError} BadRequest naming the field. */
export function parseAckRequest(body: JsonObject): AckRequest {
  assertFields(body, ['acks', 'nacks'], 'the body');
  const acks = list(body['acks'], 'acks');
  const nacks = list(body['nacks'], 'nacks');
  if (body['acks'] === undefined && body['nacks'] === undefined) {
    throw badRequest('the body has neither "acks" nor "nacks"');
  }
  const count = acks.length + nacks.length;
  if (count > MAX_TOKENS) {
    throw badRequest(
      `${count} tokens were sent, and at most ${MAX_TOKENS} are taken at once; of each lane the last one is enough: it ` +
        'confirms everything before it',
    );
  }
  return {
    acks: acks.map((token, index) => text(token, `acks[${index}]`)),
    nacks: nacks.map((nack, index) => nackOf(nack, `nacks[${index}]`)),
  };
}

function nackOf(nack: JsonValue, path: string): NackRequest {
  if (!isJsonObject(nack)) throw badRequest(`${path} must be an object with "token" and "delayMs"`);
  assertFields(nack, ['token', 'delayMs'], path);
  const { token = null, delayMs = 0 } = nack;
  if (typeof delayMs !== 'number' || !Number.isInteger(delayMs) || delayMs < 0 || delayMs > MAX_DELAY_MS) {
    throw badRequest(`${path}.delayMs must be an integer from 0 to ${MAX_DELAY_MS}`);
  }
  return { token: text(token, `${path}.token`), delayMs };
}

function list(value: JsonValue | undefined, path: string): readonly JsonValue[] {
  if (value === undefined) return [];
  if (!isJsonArray(value)) throw badRequest(`${path} must be an array`);
  return value;
}

function text(value: JsonValue, path: string): string {
  if (typeof value === 'string') return value;
  throw badRequest(`${path} must be a token: the text of the id of what is confirmed`);
}

function badRequest(message: string): StatusError {
  return new StatusError('BadRequest', message);
}

/** Bodies of requests: bounded while they are read, of a known type, strict JSON with an object at the top. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import { StatusError } from '#core/status-error.ts';
import { parseStrictJson } from '#core/strict-json.ts';

export const MAX_BODY_BYTES: number = 1024 * 1024;

const EMPTY = new Uint8Array();

/**
 * The body's object.
 * @throws {StatusError} UnsupportedMediaType, RequestEntityTooLarge, BadRequest.
 */
export async function readJsonBody(c: Context<HttpEnv>, contentType: string): Promise<JsonObject> {
  const body = await readOptionalJsonBody(c, contentType);
  if (body === undefined) throw new StatusError('BadRequest', `the body is empty; send one of type ${contentType}`);
  return body;
}

/** The same; undefined when there is no body, whatever type it claims. */
export async function readOptionalJsonBody(c: Context<HttpEnv>, contentType: string): Promise<JsonObject | undefined> {
  const body = await readTypedBody(c, [contentType]);
  return body && objectOf(body.value);
}

/** A body of one of several types, which say what it means. */
export interface TypedBody<Type extends string> {
  readonly type: Type;
  readonly value: JsonValue;
}

/**
 * The body with its type, whatever JSON it is; undefined when there is none.
 * @throws {StatusError} as `readJsonBody` does.
 */
export async function readTypedBody<const Type extends string>(
  c: Context<HttpEnv>,
  types: readonly Type[],
): Promise<TypedBody<Type> | undefined> {
  const encoding = c.req.header('content-encoding') ?? 'identity';
  if (encoding !== 'identity') throw unsupported('Content-Encoding', encoding, 'bodies without compression');
  const bytes = await readBytes(c.req.raw);
  if (bytes.byteLength === 0) return undefined;
  const type = contentTypeOf(c.req.header('content-type'), types);
  return { type, value: parseStrictJson(decode(bytes)) };
}

/** @throws {StatusError} BadRequest */
export function objectOf(value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value;
  throw new StatusError('BadRequest', 'the body must be a JSON object');
}

/** @throws {StatusError} BadRequest for a field that is not known. */
export function assertFields(object: JsonObject, known: readonly string[], where: string): void {
  const unknown = Object.keys(object).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  const names = known.map((field) => `"${field}"`).join(' and ');
  const message = `${where} has an unknown field ${JSON.stringify(unknown.slice(0, 100))}; known are ${names}`;
  throw new StatusError('BadRequest', message);
}

function contentTypeOf<Type extends string>(header: string | undefined, accepted: readonly Type[]): Type {
  const [type = '', ...parameters] = (header ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const found = accepted.find((each) => each === type);
  if (found === undefined) throw unsupported('Content-Type', header, `the type ${accepted.join(' or ')}`);
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset))
    throw unsupported('Content-Type', header, 'UTF-8');
  return found;
}

function unsupported(field: string, value: string | undefined, accepted: string): StatusError {
  const found = value === undefined ? `${field} is missing` : `${field} is ${JSON.stringify(value.slice(0, 100))}`;
  return new StatusError('UnsupportedMediaType', `${found}; accepted here: ${accepted}`);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new StatusError('BadRequest', 'the body is not valid UTF-8', { cause: error });
  }
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get('content-length');
  if (declared !== null && Number(declared) > MAX_BODY_BYTES) throw tooLarge();
  try {
    // A declared length is enforced by HTTP itself; a chunked body has to be counted.
    const bytes = declared === null ? await readCounted(request.body) : new Uint8Array(await request.arrayBuffer());
    if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge();
    return bytes;
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw new StatusError('BadRequest', 'the body ended before it was complete', { cause: error });
  }
}

async function readCounted(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  if (body === null) return EMPTY;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function tooLarge(): StatusError {
  return new StatusError('RequestEntityTooLarge', `the body is larger than ${MAX_BODY_BYTES} bytes`);
}

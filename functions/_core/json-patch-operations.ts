/** The operations of a JSON patch, as strangers send them. @see https://www.rfc-editor.org/rfc/rfc6902#section-4 */

import { isJsonObject, type JsonValue } from '#core/json.ts';
import { leadsTo, parsePointer, type Pointer } from '#core/json-pointer.ts';
import { StatusError } from '#core/status-error.ts';

/** Each may shift a list of as many elements as a body holds: 0.1 s in all for one of 520,000. */
export const MAX_PATCH_OPERATIONS: number = 1000;

export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Pointer; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: Pointer }
  | { readonly op: 'move' | 'copy'; readonly from: Pointer; readonly path: Pointer };

/** @throws {StatusError} BadRequest, naming the operation; RequestEntityTooLarge for too many. */
export function readJsonPatch(body: JsonValue): readonly PatchOperation[] {
  if (!Array.isArray(body)) throw new StatusError('BadRequest', 'a JSON patch must be a list of operations');
  if (body.length > MAX_PATCH_OPERATIONS) {
    const message = `a JSON patch has at most ${MAX_PATCH_OPERATIONS} operations; this one has ${body.length}`;
    throw new StatusError('RequestEntityTooLarge', message);
  }
  return body.map(readOperation);
}

function readOperation(operation: JsonValue, index: number): PatchOperation {
  if (!isJsonObject(operation)) throw malformed('must be an object');
  const { op, value } = operation;
  if (op === 'remove') return { op, path: pointer('path') };
  if (op === 'add' || op === 'replace' || op === 'test') {
    if (value === undefined) throw malformed('needs a value');
    return { op, path: pointer('path'), value };
  }
  if (op !== 'move' && op !== 'copy') {
    throw malformed('needs an op: "add", "remove", "replace", "move", "copy" or "test"');
  }
  const [from, path] = [pointer('from'), pointer('path')];
  if (op === 'move' && from.length < path.length && leadsTo(from, path)) {
    throw malformed('cannot move a value into itself');
  }
  return { op, from, path };

  function pointer(member: 'path' | 'from'): Pointer {
    const text = isJsonObject(operation) ? operation[member] : undefined;
    if (typeof text !== 'string') throw malformed(`needs a ${member}, which is a JSON pointer`);
    return parsePointer(text);
  }

  function malformed(problem: string): StatusError {
    return new StatusError('BadRequest', `operation ${index} of the JSON patch ${problem}`);
  }
}

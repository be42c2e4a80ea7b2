/**
 * Statements that go out at once, with their parameters. The driver asks the server for the types of the parameters before
 * it sends those of a statement that its connection has not prepared: what comes behind it waits for two more round trips,
 * the commit of its transaction too. That is every statement of a connection that is opened for one request, and every one
 * behind a pooler that prepares nothing. Measured over a connection of 40 ms: the first read of an object 40 ms in place
 * of 120.
 *
 * Types only matter to how arrays are written: anything else that statements here are given is the same text for all types
 * that its place can have. Of the driver this needs one thing that it does not document: it notes in `describeFirst`
 * whether it has to ask, when the parameters are known.
 */

import { textArray } from '#adapters/postgres/arrays.ts';

/** A statement of the driver. */
export interface Statement {
  readonly onlyDescribe?: boolean;
  /** Known once it is being sent. */
  readonly parameters: unknown[] | null;
}

/** Of what the driver makes of a template or of a call; the rest is names and values for others. */
export function isStatement(built: unknown): built is Statement {
  return built instanceof Promise;
}

/** The driver need not ask for the types of this statement's parameters. What it would have to ask for, it still asks. */
export function sendAtOnce(statement: Statement): void {
  let asks = false;
  Object.defineProperty(statement, 'describeFirst', {
    get: () => asks,
    set(hasToAsk: boolean) {
      asks = hasToAsk && (statement.onlyDescribe === true || !writeArrays(statement.parameters ?? []));
    },
  });
}

/** In place. @returns whether all parameters are text for any type, or of a type that their value tells. */
function writeArrays(parameters: unknown[]): boolean {
  for (const [index, value] of parameters.entries()) {
    if (Array.isArray(value)) parameters[index] = textArray.serialize(value);
    else if (typeof value === 'object' && value !== null && !isTold(value)) return false;
  }
  return true;
}

function isTold(value: object): boolean {
  return value instanceof Date || value instanceof Uint8Array;
}

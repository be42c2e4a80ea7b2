/**
 * The language of filters: CEL with its comparisons, `has`, the macros over lists and the functions below. Numbers of
 * JSON are doubles; they calculate with ints, which CEL leaves out.
 *
 * @see https://github.com/google/cel-spec/blob/master/doc/langdef.md
 */

import { Environment } from '@marcbachmann/cel-js';
import { EVENT_FIELDS, EventValue } from '#functions/watch/filter/event-value.ts';
import { FilterProblem } from '#functions/watch/filter/filter-problem.ts';
import { callOf, type Node, operandsOf } from '#functions/watch/filter/syntax-tree.ts';

export const MAX_FILTER_CHARACTERS = 4096;
const MAX_NODES = 500;
const MAX_DEPTH = 32;
const EVENT = 'event';

/** What works in proportion to its operands. Left out are time zones, bytes, splitting, and binding. */
const FUNCTIONS: ReadonlySet<string> = new Set(
  [
    'has size type dyn int double string bool timestamp duration',
    'contains startsWith endsWith matches indexOf substring lowerAscii upperAscii trim',
    'all exists exists_one filter map',
    'getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear',
    'getHours getMinutes getSeconds getMilliseconds',
  ].flatMap((names) => names.split(' ')),
);
const MACROS_WITH_VARIABLE: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

export const language: Environment = withMixedNumbers(
  new Environment({
    limits: { maxAstNodes: MAX_NODES, maxDepth: MAX_DEPTH, maxListElements: MAX_NODES, maxMapEntries: MAX_NODES },
  })
    .registerType('Event', { ctor: EventValue, fields: EVENT_FIELDS })
    .registerVariable(EVENT, 'Event'),
);

/** @throws {FilterProblem} for what the grammar knows and filters do not. */
export function assertSupported(node: Node): void {
  const call = callOf(node);
  if (call) assertCallSupported(call.name, call.operands, node);
  if (node.op === '.') assertAttribute(node);
  for (const operand of operandsOf(node)) assertSupported(operand);
}

function assertCallSupported(name: string, operands: readonly Node[], node: Node): void {
  if (!FUNCTIONS.has(name)) {
    throw new FilterProblem(`there is no function ${name}(); known are ${[...FUNCTIONS].join(', ')}`, node.start);
  }
  if (name.startsWith('get') && operands.length > 1)
    throw new FilterProblem(`${name}() takes no time zone`, node.start);
  const variable = MACROS_WITH_VARIABLE.has(name) ? operands[1] : undefined;
  if (variable?.args === EVENT) throw new FilterProblem(`"${EVENT}" cannot name an element`, variable.start);
}

/** The type checker finds these too, but not inside of `has`. */
function assertAttribute(node: Node): void {
  const [left, name] = node.args as [Node, string];
  if (left.op !== 'id' || left.args !== EVENT || Object.hasOwn(EVENT_FIELDS, name)) return;
  const known = Object.keys(EVENT_FIELDS).join(', ');
  throw new FilterProblem(`an event has no attribute ${JSON.stringify(name)}; it has ${known}`, node.pos);
}

function withMixedNumbers(environment: Environment): Environment {
  const operators = {
    '+': (a: number, b: number) => a + b,
    '-': (a: number, b: number) => a - b,
    '*': (a: number, b: number) => a * b,
    '/': (a: number, b: number) => a / b,
    '%': (a: number, b: number) => a % b,
  };
  for (const [operator, calculate] of Object.entries(operators)) {
    const handler = (a: unknown, b: unknown): number => calculate(Number(a), Number(b));
    environment.registerOperator(`double ${operator} int: double`, handler);
    environment.registerOperator(`int ${operator} double: double`, handler);
  }
  return environment.registerOperator('double % double: double', operators['%']);
}

/**
 * Bounds the work of one evaluation. Every node that is evaluated is charged for, by the size of what it gave: whatever
 * takes that as an operand does work in proportion to it. So nothing that an expression can say takes longer than the
 * budget, whatever the object is.
 */

import { type Evaluate, expansionOf, loopOf, type Node } from '#functions/watch/filter/syntax-tree.ts';

/** A node with a small value is 1. Measured: using all of it takes 1 to 10 ms, 30 ms when the code is cold. */
export const WORK_BUDGET = 50_000;

const CHARACTERS_PER_UNIT = 64;
const ELEMENTS_PER_UNIT = 4;
/** An error costs its making: a stack, and a text that shows the place. */
const ERROR_UNITS = 100;

export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

/** Made once: an expression that catches errors can meet it many times before it ends. */
const TOO_MUCH_WORK = new TooMuchWork('it takes more work than is allowed for one event');

let left = 0;

/** @throws {TooMuchWork} when the work of the evaluation exceeds the budget, whatever the expression made of that. */
export function metered<T>(evaluate: () => T): T {
  left = WORK_BUDGET;
  const result = evaluate();
  if (left < 0) throw TOO_MUCH_WORK;
  return result;
}

/** @throws {TooMuchWork} */
export function charge(units: number): void {
  left -= units;
  if (left < 0) throw TOO_MUCH_WORK;
}

/** Has a checked tree charge for itself. */
export function meterTree(root: Node): void {
  const seen = new Set<Node>();
  visit(root, weight);

  function visit(node: Node, weigh: (value: unknown) => number): void {
    if (seen.has(node)) return;
    seen.add(node);
    boundLoop(node);
    if (!node.meta.alternate) chargeFor(node, node.op.startsWith('accu') ? unit : weigh);
    const [iterable, init, step] = loopOf(node) ?? [];
    if (iterable && init && step) {
      visit(iterable, weight);
      visit(init, weight);
      // It gives all that was gathered so far, each time.
      visit(step, unit);
      return;
    }
    const comparesOperands = node.op === '==' || node.op === '!=' || node.op === 'in';
    for (const operand of expansionOf(node)) visit(operand, comparesOperands ? deepWeight : weight);
  }
}

function chargeFor(node: Node, weigh: (value: unknown) => number): void {
  const { evaluate } = node.meta;
  const chargingEvaluate: Evaluate = (evaluator, self, scope) => {
    try {
      const value = evaluate(evaluator, self, scope);
      charge(weigh(value));
      return value;
    } catch (error) {
      charge(ERROR_UNITS);
      throw error;
    }
  };
  node.setMeta('evaluate', chargingEvaluate);
}

/** Loops whose errors are caught go on after one: not when the budget is used up. */
function boundLoop(node: Node): void {
  if (node.op !== 'comprehension') return;
  const loop = node.args as { condition?: (result: unknown) => boolean };
  const { condition } = loop;
  if (condition) loop.condition = (result) => left >= 0 && condition(result);
}

function unit(): number {
  return 1;
}

function weight(value: unknown): number {
  if (typeof value === 'string') return 1 + value.length / CHARACTERS_PER_UNIT;
  if (Array.isArray(value)) return 1 + value.length / ELEMENTS_PER_UNIT;
  if (value instanceof Map) return 1 + value.size / ELEMENTS_PER_UNIT;
  return 1;
}

/** Of all that a comparison may walk through; what is beyond the budget does not count. */
function deepWeight(value: unknown): number {
  let total = 0;
  const waiting = [value];
  while (waiting.length > 0 && total <= left) {
    const each = waiting.pop();
    total += weight(each);
    if (Array.isArray(each)) waiting.push(...elementsWithin(each));
    else if (each instanceof Map) for (const [, element] of each) waiting.push(element);
  }
  return total;
}

function elementsWithin(elements: readonly unknown[]): readonly unknown[] {
  return elements.length > WORK_BUDGET ? [] : elements;
}

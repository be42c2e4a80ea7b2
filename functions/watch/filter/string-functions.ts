/**
 * Functions of strings whose work is not in proportion to their operands. Regular expressions are RE2's: none of them
 * can blow up, but each character costs as much as the expression is long.
 */

import { RE2JS } from 're2js';
import { FilterProblem } from '#functions/watch/filter/filter-problem.ts';
import { charge } from '#functions/watch/filter/meter.ts';
import { callOf, type Evaluate, type Node, operandsOf } from '#functions/watch/filter/syntax-tree.ts';

const MAX_PATTERN_CHARACTERS = 512;
/** Characters times instructions. Measured: 0.1 ns for each as a rule, 120 ns for the worst automaton. */
const PATTERN_STEPS_PER_UNIT = 4;

/** What a function costs by itself, and how long the text may be that it takes, where that was measured to matter. */
interface Cost {
  readonly operand: number;
  readonly maxCharacters?: number;
  readonly units?: number;
  readonly charactersPerUnit?: number;
}

const COSTS: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  // A search looks back by at most so much, and may begin again at every 250th character.
  ['contains', { operand: 1, maxCharacters: 1024 }],
  ['indexOf', { operand: 1, maxCharacters: 1024 }],
  ['size', { operand: 0, charactersPerUnit: 8 }],
  ['duration', { operand: 0, maxCharacters: 32, units: 200 }],
  ['timestamp', { operand: 0, maxCharacters: 32, units: 20 }],
  ['double', { operand: 0, maxCharacters: 64 }],
]);

/** Replaces and bounds them in a checked tree. @throws {FilterProblem} for a pattern that is no text, or no pattern. */
export function replaceStringFunctions(node: Node): void {
  const call = callOf(node);
  if (call?.name === 'matches') replaceMatches(node, call.operands);
  const cost = call && COSTS.get(call.name);
  const operand = cost && call.operands[cost.operand];
  if (operand) addCost(operand, call.name, cost);
  for (const operand of operandsOf(node)) replaceStringFunctions(operand);
}

function replaceMatches(node: Node, [receiver, pattern]: readonly Node[]): void {
  if (!receiver || pattern?.op !== 'value' || typeof pattern.args !== 'string') {
    throw new FilterProblem('the pattern of matches() must be written as a text: it is compiled once', pattern?.start);
  }
  const expression = compile(pattern.args, pattern.start);
  const stepsPerCharacter = expression.programSize();
  const evaluate: Evaluate = (evaluator, _node, scope) => {
    const text = evaluator.run(receiver, scope);
    if (typeof text !== 'string') throw new FilterProblem('matches() takes a string', node.start);
    charge((text.length * stepsPerCharacter) / PATTERN_STEPS_PER_UNIT);
    return expression.test(text);
  };
  node.setMeta('evaluate', evaluate);
}

function compile(pattern: string, at: number): RE2JS {
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    throw new FilterProblem(`a pattern has at most ${MAX_PATTERN_CHARACTERS} characters`, at);
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw new FilterProblem(`not a regular expression of RE2: ${error instanceof Error ? error.message : ''}`, at);
  }
}

function addCost(operand: Node, name: string, cost: Cost): void {
  const { maxCharacters = Infinity, units = 0, charactersPerUnit = Infinity } = cost;
  const { evaluate } = operand.meta;
  const chargingEvaluate: Evaluate = (evaluator, node, scope) => {
    const value = evaluate(evaluator, node, scope);
    const characters = typeof value === 'string' ? value.length : 0;
    if (characters > maxCharacters) {
      throw new FilterProblem(`${name}() takes a text of at most ${maxCharacters} characters`, node.start);
    }
    charge(units + characters / charactersPerUnit);
    return value;
  };
  operand.setMeta('evaluate', chargingEvaluate);
}

/**
 * Label selectors in the Kubernetes grammar: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by
 * commas that mean "and". `in` and `notin` are words like any other where a key or a value stands. An absent value is
 * the empty one: `a=`, `a in (b,)`. The numeric `>` and `<` are refused.
 *
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
 */

import { labelKeyProblem, labelValueProblem } from '#core/label.ts';
import { StatusError } from '#core/status-error.ts';

/** One condition on one key. `values` are distinct; none for the two existence operators, one or more for the others. */
export interface SelectorRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** All must hold; none of them selects everything. */
export type LabelSelector = readonly SelectorRequirement[];

const END = '';
const OPERATORS = new Map<string, 'In' | 'NotIn'>([
  ['=', 'In'],
  ['==', 'In'],
  ['!=', 'NotIn'],
  ['in', 'In'],
  ['notin', 'NotIn'],
]);

/**
 * The requirements of a selector, in the order of the text; none for an empty text.
 * @throws {StatusError} BadRequest, naming the part that is wrong.
 */
export function parseLabelSelector(text: string): SelectorRequirement[] {
  const tokens = tokenize(text);
  let position = 0;
  const requirements: SelectorRequirement[] = [];
  if (peek() === END) return requirements;
  requirements.push(requirement());
  while (peek() !== END) {
    expect(',', '"," or the end');
    requirements.push(requirement());
  }
  return requirements;

  function requirement(): SelectorRequirement {
    if (peek() === '!') {
      position++;
      return { key: key(), operator: 'DoesNotExist', values: [] };
    }
    const subject = key();
    if (peek() === END || peek() === ',') return { key: subject, operator: 'Exists', values: [] };
    const word = take();
    const operator = OPERATORS.get(word);
    if (operator === undefined) throw unexpected(word, `"=", "==", "!=", "in" or "notin" after ${quoted(subject)}`);
    if (word !== 'in' && word !== 'notin') return { key: subject, operator, values: [value(subject)] };
    return { key: subject, operator, values: valueList(subject) };
  }

  function key(): string {
    const word = take();
    if (isSymbol(word)) throw unexpected(word, 'a label key');
    const problem = labelKeyProblem(word);
    if (problem) throw refused(`the key ${quoted(word)} is invalid: ${problem}`);
    return word;
  }

  function value(subject: string): string {
    const word = isSymbol(peek()) ? '' : take();
    const problem = labelValueProblem(word);
    if (problem) throw refused(`the value ${quoted(word)} of ${quoted(subject)} is invalid: ${problem}`);
    return word;
  }

  function valueList(subject: string): string[] {
    expect('(', `"(" before the values of ${quoted(subject)}`);
    const values = new Set([value(subject)]);
    while (peek() === ',') {
      position++;
      values.add(value(subject));
    }
    expect(')', `"," or ")" after a value of ${quoted(subject)}`);
    return [...values];
  }

  function peek(): string {
    return tokens[position] ?? END;
  }

  function take(): string {
    const token = peek();
    position++;
    return token;
  }

  function expect(symbol: string, expected: string): void {
    const token = take();
    if (token !== symbol) throw unexpected(token, expected);
  }
}

/** Whether labels meet all requirements. `NotIn` also holds for objects without the key, as in Kubernetes. */
export function matchesSelector(requirements: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return requirements.every(({ key, operator, values }) => {
    // Own properties only: "constructor" is a valid label key.
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    return (value !== undefined && values.includes(value)) === (operator === 'In');
  });
}

/** One form for all selectors that are the same but for the order of requirements and values. */
export function canonicalSelector(requirements: LabelSelector): string {
  const parts = requirements.map(({ key, operator, values }) => JSON.stringify([key, operator, ...values.toSorted()]));
  return [...new Set(parts)].toSorted().join();
}

/** Symbols and words; white space only separates them. */
function tokenize(text: string): string[] {
  return text.match(/==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g) ?? [];
}

function isSymbol(token: string): boolean {
  return token === END || /^[=!(),<>]/.test(token);
}

function unexpected(token: string, expected: string): StatusError {
  return refused(`found ${token === END ? 'the end' : quoted(token)}, expected ${expected}`);
}

function refused(problem: string): StatusError {
  return new StatusError('BadRequest', `labelSelector: ${problem}`);
}

function quoted(part: string): string {
  return JSON.stringify(part.length > 80 ? `${part.slice(0, 80)}…` : part);
}

/**
 * Filters: expressions of CEL over one event. They are checked when they are compiled, so that little is left to fail
 * later; what does fail later is an error, never "does not match".
 */

import { EvaluationError, type ParseResult } from '@marcbachmann/cel-js';
import type { EventType, StreamEvent } from '#core/event.ts';
import { StatusError } from '#core/status-error.ts';
import { EventValue } from '#functions/watch/filter/event-value.ts';
import { FilterProblem } from '#functions/watch/filter/filter-problem.ts';
import { assertSupported, language, MAX_FILTER_CHARACTERS } from '#functions/watch/filter/language.ts';
import { metered, meterTree, TooMuchWork } from '#functions/watch/filter/meter.ts';
import { replaceStringFunctions } from '#functions/watch/filter/string-functions.ts';
import type { Node } from '#functions/watch/filter/syntax-tree.ts';

export interface Filter {
  /** As it was written. */
  readonly text: string;
  /**
   * Whether an event matches that is of this type to its watcher. Evaluated once for all who ask.
   * @throws {FilterFailed}
   */
  matches(event: StreamEvent, type: EventType): boolean;
}

/** An expression that could not be evaluated over an event. */
export class FilterFailed extends Error {
  override readonly name = 'FilterFailed';
}

const MAX_COMPILED = 256;
const MAX_SHOWN_CHARACTERS = 200;
const MAX_PROBLEM_CHARACTERS = 300;

/** The newest last. */
const compiled = new Map<string, Filter>();

/**
 * The filter of an expression, shared by all who give the same text.
 * @throws {StatusError} BadRequest, naming the expression, the problem and its place.
 */
export function compileFilter(text: string): Filter {
  const filter = compiled.get(text) ?? createFilter(text);
  compiled.delete(text);
  compiled.set(text, filter);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= MAX_COMPILED) break;
    compiled.delete(oldest);
  }
  return filter;
}

function createFilter(text: string): Filter {
  const evaluate = compile(text);
  const verdicts = { ADDED: new WeakMap(), MODIFIED: new WeakMap(), DELETED: new WeakMap() } as const satisfies Record<
    EventType,
    WeakMap<StreamEvent, boolean | FilterFailed>
  >;
  return { text, matches };

  function matches(event: StreamEvent, type: EventType): boolean {
    const known: boolean | FilterFailed | undefined = verdicts[type].get(event);
    const verdict = known ?? verdictOf(event, type);
    if (known === undefined) verdicts[type].set(event, verdict);
    if (typeof verdict === 'boolean') return verdict;
    throw verdict;
  }

  function verdictOf(event: StreamEvent, type: EventType): boolean | FilterFailed {
    try {
      return metered((): boolean => evaluate({ event: new EventValue(event, type) }) as boolean);
    } catch (error) {
      const message = `the filter ${shown(text)} failed on the event ${event.id}: ${problemOf(error, text)}`;
      return new FilterFailed(message, { cause: error });
    }
  }
}

function compile(text: string): ParseResult {
  if (text.length > MAX_FILTER_CHARACTERS) {
    throw refused(text, `it has ${text.length} characters; allowed are ${MAX_FILTER_CHARACTERS}`);
  }
  try {
    const expression = language.parse(text);
    const root = expression.ast as unknown as Node;
    assertSupported(root);
    const { valid, type = '', error } = expression.check();
    if (!valid) throw error ?? new FilterProblem('it is not valid');
    if (type !== 'bool') throw new FilterProblem(notBoolean(type));
    replaceStringFunctions(root);
    meterTree(root);
    return expression;
  } catch (error) {
    throw refused(text, problemOf(error, text));
  }
}

function notBoolean(type: string): string {
  if (type === 'dyn') return 'its type is not known before: compare what it gives, such as with "== true"';
  return `it gives ${type}; a filter gives bool`;
}

function problemOf(error: unknown, text: string): string {
  if (error instanceof FilterProblem) return located(error.message, error.at, text);
  if (error instanceof TooMuchWork) return error.message;
  if (error instanceof Error && 'summary' in error && typeof error.summary === 'string') {
    const range = 'range' in error ? (error.range as { readonly start: number } | undefined) : undefined;
    const advice = error instanceof EvaluationError && error.code === 'no_such_key' ? '; ask with has() before' : '';
    return located(`${error.summary}${advice}`, range?.start, text);
  }
  // Of the engine: a stack that is too deep, a text that is too long.
  return 'it cannot be evaluated';
}

function located(problem: string, at: number | undefined, text: string): string {
  const short = problem.length > MAX_PROBLEM_CHARACTERS ? `${problem.slice(0, MAX_PROBLEM_CHARACTERS)}…` : problem;
  if (at === undefined) return short;
  const found = text.slice(at, at + 20);
  return `${short}, at character ${at + 1}${found === '' ? ' (the end)' : ` (${JSON.stringify(found)})`}`;
}

function refused(text: string, problem: string): StatusError {
  const causes = [{ reason: 'FieldValueInvalid', message: problem, field: 'filter' }];
  return new StatusError('BadRequest', `the filter ${shown(text)} is refused: ${problem}`, { details: { causes } });
}

function shown(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text);
}

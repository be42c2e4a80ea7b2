/** Field selectors on what every object has: `metadata.name=a`, `metadata.namespace==b`, joined by commas. */

import { canBeName, dnsLabelProblem } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';

export interface FieldSelector {
  readonly name?: string;
  readonly namespace?: string;
  /** No object can be selected: terms contradict each other, or name what cannot be a name. */
  readonly isEmpty: boolean;
}

const FIELDS: ReadonlyMap<string, 'name' | 'namespace'> = new Map([
  ['metadata.name', 'name'],
  ['metadata.namespace', 'namespace'],
]);
const TERM = /^([^=!]+)(==?|!=)(.*)$/;

/** @throws {StatusError} BadRequest, naming the term that is wrong or not supported. */
export function parseFieldSelector(text: string): FieldSelector {
  const selected: { name?: string; namespace?: string } = {};
  let isEmpty = false;
  for (const term of text.split(',')) {
    if (term.trim() === '') continue;
    const [, path = '', operator, value = ''] = TERM.exec(term.trim()) ?? [];
    if (operator === undefined) throw refused(`"${shortened(term)}" is not of the form field=value`);
    const field = FIELDS.get(path);
    if (field === undefined) {
      throw refused(`field label not supported: ${shortened(path)}; known are ${[...FIELDS.keys()].join(' and ')}`);
    }
    if (operator === '!=') throw refused(`"!=" is not supported, use "=" or "=="`);
    isEmpty ||= selected[field] !== undefined && selected[field] !== value;
    isEmpty ||= field === 'name' ? !canBeName(value) : dnsLabelProblem(value) !== undefined;
    selected[field] = value;
  }
  return { ...selected, isEmpty };
}

function shortened(part: string): string {
  return part.length > 80 ? `${part.slice(0, 80)}…` : part;
}

function refused(problem: string): StatusError {
  return new StatusError('BadRequest', `fieldSelector: ${problem}`);
}

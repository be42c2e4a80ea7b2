/** Field selectors on what every object has: `metadata.name=a`, `metadata.namespace!=b`, joined by commas. */

import { canBeName, dnsLabelProblem } from '#core/names.ts';
import { StatusError } from '#core/status-error.ts';

export interface FieldSelector {
  readonly name?: string;
  readonly namespace?: string;
  /** Those that are not selected. */
  readonly not: { readonly names: readonly string[]; readonly namespaces: readonly string[] };
  /** No object can be selected: terms contradict each other, or name what cannot be a name. */
  readonly isEmpty: boolean;
}

const FIELDS: ReadonlyMap<string, 'name' | 'namespace'> = new Map([
  ['metadata.name', 'name'],
  ['metadata.namespace', 'namespace'],
]);
/** Of those that are not selected: each is compared with every object that is looked at. */
const MAX_NOT = 100;
const TERM = /^([^=!]+)(==?|!=)(.*)$/;

/** @throws {StatusError} BadRequest, naming the term that is wrong or not supported. */
export function parseFieldSelector(text: string): FieldSelector {
  const selected: { name?: string; namespace?: string } = {};
  const not = { name: [] as string[], namespace: [] as string[] };
  let isEmpty = false;
  for (const term of text.split(',')) {
    if (term.trim() === '') continue;
    const [, path = '', operator, value = ''] = TERM.exec(term.trim()) ?? [];
    if (operator === undefined) throw refused(`"${shortened(term)}" is not of the form field=value`);
    const field = FIELDS.get(path);
    if (field === undefined) {
      throw refused(`field label not supported: ${shortened(path)}; known are ${[...FIELDS.keys()].join(' and ')}`);
    }
    if (operator === '!=') {
      // What nothing is called leaves nothing out.
      if (canBe(field, value)) not[field].push(value);
      continue;
    }
    isEmpty ||= selected[field] !== undefined && selected[field] !== value;
    isEmpty ||= !canBe(field, value);
    selected[field] = value;
  }
  const terms = not.name.length + not.namespace.length;
  if (terms > MAX_NOT) throw refused(`has ${terms} terms with "!="; allowed are ${MAX_NOT}`);
  isEmpty ||= selected.name !== undefined && not.name.includes(selected.name);
  isEmpty ||= selected.namespace !== undefined && not.namespace.includes(selected.namespace);
  return { ...selected, not: { names: not.name, namespaces: not.namespace }, isEmpty };
}

function canBe(field: 'name' | 'namespace', value: string): boolean {
  return field === 'name' ? canBeName(value) : dnsLabelProblem(value) === undefined;
}

function shortened(part: string): string {
  return part.length > 80 ? `${part.slice(0, 80)}…` : part;
}

function refused(problem: string): StatusError {
  return new StatusError('BadRequest', `fieldSelector: ${problem}`);
}

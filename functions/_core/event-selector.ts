/** Field selectors on Kubernetes Events: `involvedObject.uid=…,type!=Normal`. */

import { EVENT_FIELDS, type EventCondition } from '#core/ports/object-events.ts';
import { StatusError } from '#core/status-error.ts';

const TERM = /^([^=!]+)(==?|!=)(.*)$/;

/** An empty value is one too: objects that are cluster-scoped have no namespace. @throws {StatusError} BadRequest */
export function parseEventSelector(text: string): readonly EventCondition[] {
  return text
    .split(',')
    .filter((term) => term.trim() !== '')
    .map(parseTerm);
}

function parseTerm(term: string): EventCondition {
  const [, path = '', operator, value = ''] = TERM.exec(term.trim()) ?? [];
  if (operator === undefined) throw refused(`"${shortened(term)}" is not of the form field=value`);
  const field = EVENT_FIELDS.find((known) => known === path);
  if (field === undefined) {
    throw refused(`field label not supported: ${shortened(path)}; known are ${EVENT_FIELDS.join(', ')}`);
  }
  return { field, is: operator !== '!=', value };
}

function shortened(part: string): string {
  return part.length > 80 ? `${part.slice(0, 80)}…` : part;
}

function refused(problem: string): StatusError {
  return new StatusError('BadRequest', `fieldSelector: ${problem}`);
}

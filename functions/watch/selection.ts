/** Which events a watcher asked for, and what each means to it. */

import type { EventType, StreamEvent } from '#core/event.ts';
import { matchesSelector, type SelectorRequirement } from '#core/label-selector.ts';
import type { JsonText } from '#core/resource.ts';

export interface KindName {
  readonly group: string;
  readonly kind: string;
}

/** What a selection looks at. */
export interface Selectable extends KindName {
  readonly labels: JsonText;
}

export interface Selection {
  /** Equal for selections that select the same: their watchers share encoded frames. */
  readonly key: string;
  /** Absent: all. */
  readonly kinds: readonly KindName[] | undefined;
  /**
   * What the event is to a watcher of this selection: its own type, ADDED when the object enters the selection, DELETED
   * when it leaves it, undefined when it is of no concern. What was SKIPPED is of no concern to anyone.
   */
  typeOf(event: StreamEvent): EventType | undefined;
  matches(object: Selectable): boolean;
}

/** What most watchers have: one for all of them. */
const EVERYTHING: Selection = {
  key: '',
  kinds: undefined,
  typeOf: ({ type }) => (type === 'SKIPPED' ? undefined : type),
  matches: () => true,
};

export function createSelection(
  kinds: readonly KindName[] | undefined,
  labels: readonly SelectorRequirement[],
): Selection {
  if (!kinds && labels.length === 0) return EVERYTHING;
  const wanted = kinds && new Set(kinds.map(({ group, kind }) => `${group}/${kind}`));
  return {
    key: JSON.stringify([wanted ? [...wanted].toSorted() : '*', labels]),
    kinds,
    typeOf,
    matches: (object) => isWantedKind(object) && matchesLabels(object.labels),
  };

  function typeOf(event: StreamEvent): EventType | undefined {
    if (event.type === 'SKIPPED' || !isWantedKind(event.subject)) return undefined;
    if (labels.length === 0) return event.type;
    const matchesNow = matchesLabels(event.labels);
    const matchedBefore = event.oldLabels === null ? matchesNow : matchesLabels(event.oldLabels);
    switch (event.type) {
      case 'ADDED':
        return matchesNow ? 'ADDED' : undefined;
      case 'MODIFIED':
        if (matchesNow) return matchedBefore ? 'MODIFIED' : 'ADDED';
        return matchedBefore ? 'DELETED' : undefined;
      case 'DELETED':
        // The last write may have changed the labels and deleted the object at once.
        return matchedBefore ? 'DELETED' : undefined;
    }
  }

  function isWantedKind({ group, kind }: KindName): boolean {
    return wanted === undefined || wanted.has(`${group}/${kind}`);
  }

  function matchesLabels(text: string): boolean {
    return labels.length === 0 || matchesSelector(labels, JSON.parse(text) as Record<string, string>);
  }
}

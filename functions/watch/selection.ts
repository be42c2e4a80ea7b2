/** Which events a watcher asked for, and what each means to it. */

import { EVENT_TYPES, type EventType, type StreamEvent } from '#core/event.ts';
import { canonicalSelector, matchesSelector, type SelectorRequirement } from '#core/label-selector.ts';
import type { JsonText } from '#core/resource.ts';
import type { Filter } from '#functions/watch/filter/compile.ts';

export interface KindName {
  readonly group: string;
  readonly kind: string;
}

/** What a selection looks at. */
export interface Selectable extends KindName {
  readonly labels: JsonText;
}

export interface Selection {
  /**
   * Equal for selections that are written the same, in any order: their watchers share encoded frames. For people, it is
   * the parameters that are given; empty: everything.
   */
  readonly key: string;
  /** Absent: all. */
  readonly kinds: readonly KindName[] | undefined;
  /** Present: `typeOf` may take milliseconds for an event. */
  readonly filter: Filter | undefined;
  /**
   * What the event is to a watcher of this selection: its own type, ADDED when the object enters the selection, DELETED
   * when it leaves it, undefined when it is of no concern. What was SKIPPED is of no concern to anyone. Entering and
   * leaving are by labels alone; `types` and `filter` look at the one event that comes of it.
   * @throws {FilterFailed}
   */
  typeOf(event: StreamEvent): EventType | undefined;
  /** Whether its kind and its labels are selected: only then `typeOf` needs to be asked. */
  matches(object: Selectable): boolean;
}

/** All that is given must hold. */
export interface SelectionParams {
  readonly kinds?: readonly KindName[] | undefined;
  readonly labels?: readonly SelectorRequirement[];
  readonly types?: readonly EventType[] | undefined;
  readonly filter?: Filter | undefined;
}

/** What most watchers have: one for all of them. */
const EVERYTHING: Selection = {
  key: '',
  kinds: undefined,
  filter: undefined,
  typeOf: ({ type }) => (type === 'SKIPPED' ? undefined : type),
  matches: () => true,
};

export function createSelection({ kinds, labels = [], types, filter }: SelectionParams): Selection {
  if (!kinds && labels.length === 0 && !types && !filter) return EVERYTHING;
  const wanted = kinds && new Set(kinds.map(({ group, kind }) => `${group}/${kind}`));
  const wantedTypes = types && new Set(types);
  return {
    key: keyOf({
      kinds: wanted && [...wanted].toSorted().join(','),
      labelSelector: canonicalSelector(labels),
      types: wantedTypes && wantedTypes.size < EVENT_TYPES.length ? [...wantedTypes].toSorted().join(',') : undefined,
      // The last: it is any text.
      filter: filter?.text,
    }),
    kinds,
    filter,
    typeOf,
    matches: (object) => isWantedKind(object) && matchesLabels(object.labels),
  };

  function typeOf(event: StreamEvent): EventType | undefined {
    if (event.type === 'SKIPPED' || !isWantedKind(event.subject)) return undefined;
    const type = typeByLabels(event, event.type);
    if (type === undefined || wantedTypes?.has(type) === false) return undefined;
    return !filter || filter.matches(event, type) ? type : undefined;
  }

  function typeByLabels(event: StreamEvent, type: EventType): EventType | undefined {
    if (labels.length === 0) return type;
    const matchesNow = matchesLabels(event.labels);
    const matchedBefore = event.oldLabels === null ? matchesNow : matchesLabels(event.oldLabels);
    switch (type) {
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

function keyOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return given.map(([name, value]) => `${name}=${value}`).join('&');
}

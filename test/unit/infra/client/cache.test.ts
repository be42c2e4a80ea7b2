import { describe, expect, test } from 'vitest';
import { type Cache, createCache } from '#infra/client/informer/cache.ts';
import type { Change, EventType, PlumblineObject } from '#infra/client/objects.ts';

function object(uid: string, version: string, name: string = uid): PlumblineObject {
  return {
    apiVersion: 'example.dev/v1',
    kind: 'Widget',
    metadata: {
      name,
      namespace: 'acme',
      uid,
      resourceVersion: version,
      generation: 1,
      creationTimestamp: '2026-11-30T00:00:00Z',
    },
    spec: {},
  };
}

/** A deletion has a version of its own; what it carries is the last state. */
function change(type: EventType, uid: string, version: string, last: string = version): Change {
  const state = object(uid, last);
  return { type, object: state, event: { resourceversion: version, data: state } as Change['event'], cursor: 'c' };
}

function cacheWithStory(): { cache: Cache<Record<string, unknown>, Record<string, unknown>>; story: string[] } {
  const story: string[] = [];
  const cache = createCache<Record<string, unknown>, Record<string, unknown>>({
    onAdd: ({ metadata }) => void story.push(`+ ${metadata.uid}@${metadata.resourceVersion}`),
    onUpdate: ({ metadata }, before) =>
      void story.push(`~ ${metadata.uid}@${before.metadata.resourceVersion}>${metadata.resourceVersion}`),
    onDelete: ({ metadata }, { finalStateUnknown }) =>
      void story.push(`${finalStateUnknown ? '?' : '-'} ${metadata.uid}`),
  });
  return { cache, story };
}

function list(
  cache: Cache<Record<string, unknown>, Record<string, unknown>>,
  objects: readonly PlumblineObject[],
  isTrusted: boolean = false,
): void {
  const intake = cache.beginList({ isTrusted });
  for (const each of objects) intake.take([each]);
  intake.complete();
}

describe('createCache()', () => {
  test('takes what is newer, and nothing else', () => {
    const { cache, story } = cacheWithStory();
    cache.apply(change('ADDED', 'a', '9'));
    cache.apply(change('MODIFIED', 'a', '10'));
    cache.apply(change('MODIFIED', 'a', '9'));
    cache.apply(change('DELETED', 'a', '10'));
    list(cache, [object('a', '9')]);
    expect(story).toEqual(['+ a@9', '~ a@9>10']);
  });

  test('does not raise what is gone by what comes late', () => {
    const { cache, story } = cacheWithStory();
    cache.apply(change('ADDED', 'a', '1'));
    cache.apply(change('DELETED', 'a', '3', '1'));
    cache.apply(change('MODIFIED', 'a', '2'));
    list(cache, [object('a', '2')]);
    expect(story).toEqual(['+ a@1', '- a']);
  });

  test('takes what a selector lets back in', () => {
    const { cache, story } = cacheWithStory();
    cache.apply(change('ADDED', 'a', '1'));
    cache.apply(change('DELETED', 'a', '2'));
    cache.apply(change('ADDED', 'a', '3'));
    expect(story).toEqual(['+ a@1', '- a', '+ a@3']);
  });

  test('tells once of what was deleted while the list was read, though the watch behind it tells of its last changes', () => {
    const { cache, story } = cacheWithStory();
    list(cache, [object('a', '1'), object('b', '2')]);
    list(cache, [object('b', '2')]);
    cache.apply(change('MODIFIED', 'a', '3'));
    cache.apply(change('DELETED', 'a', '4', '3'));
    expect(story).toEqual(['+ a@1', '+ b@2', '? a']);
  });

  test('finds an object by its name when another of the same name was there before', () => {
    const { cache, story } = cacheWithStory();
    list(cache, [object('old', '1', 'blue')]);
    list(cache, [object('new', '2', 'blue')]);
    expect(cache.get('acme', 'blue')?.metadata.uid).toBe('new');
    expect(story).toEqual(['+ old@1', '+ new@2', '? old']);
  });

  test('believes the list of a database that was restored, which is older', () => {
    const { cache, story } = cacheWithStory();
    cache.apply(change('ADDED', 'a', '5'));
    cache.apply(change('ADDED', 'b', '6'));
    cache.apply(change('DELETED', 'b', '7', '6'));
    list(cache, [object('a', '3'), object('b', '4')], true);
    expect(story).toEqual(['+ a@5', '+ b@6', '- b', '~ a@5>3', '+ b@4']);
  });
});

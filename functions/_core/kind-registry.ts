/** The kinds that one installation serves. */

import type { Kind } from '#core/kind.ts';

export interface KindRegistry {
  readonly all: readonly Kind[];
  /** The kind that a path names. */
  atPath(group: string, version: string, plural: string): Kind | undefined;
}

/**
 * A registry of kinds. A kind has one version, and a plural stands for one kind of its group.
 * @throws {TypeError} naming two kinds that are in each other's way.
 */
export function createKindRegistry(kinds: readonly Kind[]): KindRegistry {
  const byPath = new Map<string, Kind>();
  const byName = new Map<string, Kind>();
  for (const kind of kinds) {
    const twin = byName.get(`${kind.group}/${kind.kind}`);
    if (twin) {
      throw new TypeError(`kind ${kind.group}/${kind.kind} is defined twice (${twin.version} and ${kind.version})`);
    }
    byName.set(`${kind.group}/${kind.kind}`, kind);
    const neighbour = kinds.find(
      (other) => other !== kind && other.group === kind.group && other.plural === kind.plural,
    );
    if (neighbour) {
      throw new TypeError(
        `kinds ${kind.kind} and ${neighbour.kind} of group ${kind.group} have the same plural "${kind.plural}"`,
      );
    }
    byPath.set(`${kind.group}/${kind.version}/${kind.plural}`, kind);
  }
  return {
    all: Object.freeze([...kinds]),
    atPath: (group, version, plural) => byPath.get(`${group}/${version}/${plural}`),
  };
}

/**
 * The marker on an external object: whose it is. Owned means that the marker is ours, word for word; an object without
 * one, or with another, belongs to somebody else and is left alone.
 */

export interface Marker {
  /** Of this control plane: two of them may use one external system. */
  readonly installation: string;
  /** `group/Kind`. */
  readonly kind: string;
  readonly uid: string;
}

const PREFIX = 'plumbline:';

/** One line of text, for a comment, a description or a tag. */
export function markerText({ installation, kind, uid }: Marker): string {
  return `${PREFIX}${installation}/${kind}/${uid}`;
}

/** The marker in a text; undefined for a text that is none. */
export function readMarker(text: string | null | undefined): Marker | undefined {
  const match = /^plumbline:([^/]+)\/([^/]+\/[^/]+)\/([^/]+)$/.exec(text ?? '');
  const [, installation, kind, uid] = match ?? [];
  return installation === undefined || kind === undefined || uid === undefined
    ? undefined
    : { installation, kind, uid };
}

export type Ownership = 'ours' | 'unowned' | 'foreign';

/** Ours, nobody's (no marker of Plumbline), or another object's or installation's. */
export function ownershipOf(text: string | null | undefined, marker: Marker): Ownership {
  if (text === markerText(marker)) return 'ours';
  return readMarker(text) === undefined ? 'unowned' : 'foreign';
}

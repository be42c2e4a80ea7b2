/** What of all changes is wanted, and how it is asked for. */

import type { EventType } from '#infra/client/objects.ts';

export interface Selection {
  /** @default all that the token may see, those that are made later included */
  readonly tenants?: readonly string[] | undefined;
  /** `Widget`, or `example.dev/Widget`. @default all */
  readonly kinds?: readonly string[] | undefined;
  /** Such as `team=shop,tier!=test`. */
  readonly labelSelector?: string | undefined;
  /** An expression over `event`, in CEL. */
  readonly filter?: string | undefined;
  /** @default all */
  readonly types?: readonly EventType[] | undefined;
}

/** The path of a watch. Parameters that are undefined are left out. */
export function watchPath(
  { tenants, kinds, labelSelector, filter, types }: Selection,
  parameters: Readonly<Record<string, string | number | undefined>>,
): string {
  const query = new URLSearchParams();
  const all: Readonly<Record<string, string | number | undefined>> = {
    tenants: tenants?.join(','),
    kinds: kinds?.join(','),
    labelSelector,
    filter,
    types: types?.join(','),
    ...parameters,
  };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return `/watch/v1/events${text === '' ? '' : `?${text}`}`;
}

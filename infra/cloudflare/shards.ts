/** Who watches the same tenants meets in one shard, and shares its tails. */

import { digestOf } from '#http/digest.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';

export function shardNames({ shardCount }: EdgeConfig): readonly string[] {
  return Array.from({ length: shardCount }, (_, index) => `watch-${index}`);
}

/** The shard of a request; what has no tenants in its URL goes where those go who watch all. */
export async function shardOf(url: URL, edge: EdgeConfig): Promise<string> {
  const names = shardNames(edge);
  if (names.length === 1) return names[0]!;
  const tenants = url.searchParams.getAll('tenants').join(',').split(',').toSorted().join(',');
  const digest = await digestOf(tenants);
  return names[Number.parseInt(digest.slice(0, 8), 16) % names.length]!;
}

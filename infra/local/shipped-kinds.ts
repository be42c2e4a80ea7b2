/** The kinds that every installation serves, with their controllers and what those act on. */

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import type { Kind } from '#core/kind.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { tenants } from '#functions/reconcile/kinds/tenant.ts';
import type { Config } from '#infra/local/config.ts';

export interface ShippedKindsOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly topicAdmin: TopicAdmin | undefined;
}

export function shippedKinds({ config, sql, topicAdmin }: ShippedKindsOptions): readonly Kind[] {
  const streams = postgresTenantStreams(sql, topicAdmin);
  const tenant = tenants({ streams, graceMs: config.tenantGraceSeconds * 1_000 });
  return [tenant, ...SHIPPED_KINDS.filter(({ kind }) => kind !== tenant.kind)];
}

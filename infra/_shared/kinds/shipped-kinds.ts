/** The kinds that every installation serves, with their controllers and what those act on. */

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresTenantStreams } from '#adapters/postgres/tenant-streams.ts';
import type { Kind } from '#core/kind.ts';
import type { TopicAdmin } from '#core/ports/topics.ts';
import { databaseKinds } from '#functions/reconcile/kinds/database-kinds.ts';
import { tenants } from '#functions/reconcile/kinds/tenant.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { statementUrl } from '#infra/_shared/settings/database-variables.ts';
import { databaseServers } from '#infra/_shared/database/database-servers.ts';

export interface ShippedKindsOptions {
  readonly config: Config;
  /** Of the embedded server; any other is not looked at. */
  readonly databaseUrl: string | undefined;
  readonly sql: Sql;
  readonly topicAdmin: TopicAdmin | undefined;
}

export function shippedKinds({ config, databaseUrl, sql, topicAdmin }: ShippedKindsOptions): readonly Kind[] {
  const streams = postgresTenantStreams(sql, topicAdmin);
  // The embedded server is at hand for managed databases; one that was given is not ours to fill.
  const isEmbedded = databaseUrl !== undefined && statementUrl(config) === undefined;
  const local = isEmbedded ? { local: withDatabase(databaseUrl, 'postgres') } : {};
  const servers = databaseServers({ ...local, ...config.databaseServers });
  return [tenants({ streams, graceMs: config.tenantGraceSeconds * 1_000 }), ...databaseKinds({ servers })];
}

function withDatabase(databaseUrl: string, name: string): string {
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}

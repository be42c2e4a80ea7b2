/** What the programs share that read and change the blocks of tokens. */

import type { Sql } from '#adapters/postgres/client.ts';
import { asRole } from '#adapters/postgres/as-role.ts';
import type { TokenBlock } from '#core/token-block.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { findDatabaseUrl } from '#infra/_shared/database/find-database.ts';
import { assertOwnSchema } from '#infra/_shared/database/own-schema.ts';

/** Works on the list in the database of DATABASE_URL, or of the instance that runs in DATA_DIR. */
export async function onBlockList<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const url = await findDatabaseUrl(readConfig(process.env, { isTerminal: false }));
  await assertOwnSchema(url);
  return asRole(url, { applicationName: 'plumbline block', role: 'plumbline_migrator' }, work);
}

export function describeBlock(block: TokenBlock): string {
  const whose = 'subject' in block ? `subject "${block.subject}"` : `token "${block.tokenId}"`;
  return block.tenant === undefined ? whose : `${whose} in tenant ${block.tenant}`;
}

/** The list of token blocks as operators read and change it; servers follow it by `token-blocks.ts`. */

import type { Sql } from '#adapters/postgres/client.ts';
import type { TokenBlock } from '#core/token-block.ts';

export interface NewTokenBlock {
  readonly block: TokenBlock;
  readonly reason: string;
  /** Absent: until it is removed. */
  readonly forSeconds: number | undefined;
  /** Who blocks. @default the user of the database session */
  readonly by: string | undefined;
}

export interface ListedTokenBlock {
  readonly subject: string | null;
  readonly tokenId: string | null;
  /** Null: everything. */
  readonly tenant: string | null;
  readonly reason: string;
  readonly by: string;
  readonly since: Date;
  readonly until: Date | null;
}

/** Adds a block, or gives the same one a new reason and end. Those whose time is over go. */
export async function addTokenBlock(sql: Sql, { block, reason, forSeconds, by }: NewTokenBlock): Promise<void> {
  const { subject, tokenId, tenant } = columnsOf(block);
  await sql`delete from plumbline.token_block where expires_at <= clock_timestamp()`;
  await sql`
    insert into plumbline.token_block (subject, token_id, tenant, reason, blocked_by, expires_at)
    values (${subject}, ${tokenId}, ${tenant}, ${reason}, coalesce(${by ?? null}, session_user),
      clock_timestamp() + make_interval(secs => ${forSeconds ?? null}::float8))
    on conflict on constraint token_block_once do update set reason = excluded.reason, blocked_by = excluded.blocked_by,
      blocked_at = excluded.blocked_at, expires_at = excluded.expires_at`;
}

/** Whether there was one. */
export async function removeTokenBlock(sql: Sql, block: TokenBlock): Promise<boolean> {
  const { subject, tokenId, tenant } = columnsOf(block);
  const removed = await sql`
    delete from plumbline.token_block
    where (subject, token_id, tenant) is not distinct from (${subject}::text, ${tokenId}::text, ${tenant}::text)`;
  return removed.count > 0;
}

/** Those in force, in the order in which they were made. */
export async function listTokenBlocks(sql: Sql): Promise<readonly ListedTokenBlock[]> {
  return sql<ListedTokenBlock[]>`
    select subject, token_id as "tokenId", tenant, reason, blocked_by as by, blocked_at as since, expires_at as until
    from plumbline.token_block_in_force order by blocked_at, id`;
}

function columnsOf(block: TokenBlock): Record<'subject' | 'tokenId' | 'tenant', string | null> {
  return {
    subject: 'subject' in block ? block.subject : null,
    tokenId: 'tokenId' in block ? block.tokenId : null,
    tenant: block.tenant ?? null,
  };
}

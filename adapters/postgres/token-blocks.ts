/** The blocks of tokens in PostgreSQL, see sql/0017_token_block.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { onNotification } from '#adapters/postgres/notifications.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { StatusError } from '#core/status-error.ts';
import { type BlockSet, createBlockSet, type TokenBlock } from '#core/token-block.ts';

/** Blocks also end by time, which nobody notifies. */
const FLOOR_MS = 2_000;
/** Several attempts have failed by then: the database is away. */
const MAX_AGE_MS = 10_000;

interface BlockRow {
  readonly subject: string | null;
  readonly tokenId: string | null;
  readonly tenant: string | null;
}

/**
 * Follows the blocks until the signal aborts. Resolves when they were read for the first time.
 * @throws {StatusError} ServiceUnavailable.
 */
export async function followTokenBlocks(sql: Sql, signal: AbortSignal): Promise<TokenBlocks> {
  let known: BlockSet = createBlockSet([]);
  let rowsOfKnown = '[]';
  let readAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  let isAskedAgain = false;

  await read();
  onNotification(sql, { channel: 'plumbline_token_block', floorMs: FLOOR_MS }, refresh, signal);
  return {
    get known() {
      return known;
    },
    get ageMs() {
      return age();
    },
    async current() {
      if (age() > MAX_AGE_MS) await readOrRefuse();
      return known;
    },
  };

  function age(): number {
    return performance.now() - readAtMs;
  }

  /** What fails is tried again at the next call; meanwhile the age tells. */
  function refresh(): void {
    // A notification during a read may be of what the read does not see yet.
    if (reading) isAskedAgain = true;
    else void read().catch(() => undefined);
  }

  async function readOrRefuse(): Promise<void> {
    try {
      await read();
    } catch (error) {
      throw new StatusError('ServiceUnavailable', 'it cannot be told which tokens are blocked; try again', {
        details: { retryAfterSeconds: 1 },
        cause: error,
      });
    }
  }

  function read(): Promise<void> {
    reading ??= readOnce().finally(() => {
      reading = undefined;
      if (!isAskedAgain || signal.aborted) return;
      isAskedAgain = false;
      refresh();
    });
    return reading;
  }

  async function readOnce(): Promise<void> {
    const beganAtMs = performance.now();
    const rows = await selectBlocks(sql);
    const text = JSON.stringify(rows);
    if (text !== rowsOfKnown) known = createBlockSet(rows.map(toBlock));
    rowsOfKnown = text;
    readAtMs = beganAtMs;
  }
}

/** The blocks as they are now. @throws {StatusError} ServiceUnavailable. */
export async function readTokenBlocks(sql: Sql): Promise<BlockSet> {
  return createBlockSet((await selectBlocks(sql)).map(toBlock));
}

async function selectBlocks(sql: Sql): Promise<readonly BlockRow[]> {
  return guarded(
    'token blocks',
    () => sql<BlockRow[]>`
      select subject, token_id as "tokenId", tenant from plumbline.token_block_in_force order by id`,
  );
}

function toBlock({ subject, tokenId, tenant }: BlockRow): TokenBlock {
  const where = tenant === null ? {} : { tenant };
  return subject === null ? { tokenId: tokenId ?? '', ...where } : { subject, ...where };
}

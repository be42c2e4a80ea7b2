/**
 * What every request needs of the database, kept between requests as plain data: sockets and timers end with the request
 * that made them, so nothing can be followed here as resident processes do. Whoever finds it stale reads it anew.
 */

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { type Sql, toCallerError } from '#adapters/postgres/client.ts';
import { readTenantLimits } from '#adapters/postgres/quotas.ts';
import { assertServable } from '#adapters/postgres/servable.ts';
import { readTokenBlocks } from '#adapters/postgres/token-blocks.ts';
import { KEYS_READ_EVERY_MS } from '#core/ports/cursor-keys.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import type { Limits, TenantLimits } from '#core/ports/tenant-limits.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { StatusError } from '#core/status-error.ts';
import type { BlockSet } from '#core/token-block.ts';
import { cursorKeysOf } from '#infra/cloudflare/cursor-keys.ts';
import { edge, kindsOver } from '#infra/cloudflare/installation.ts';

export interface Knowledge {
  readonly box: SecretBox;
  readonly blocks: TokenBlocks;
}

interface Known {
  readonly box: SecretBox;
  readonly blocks: BlockSet;
  readonly limits: ReadonlyMap<string, Limits>;
  readonly readAtMs: number;
}

let known: Known | undefined;

/** What tenants may ask for, as it was last read. */
export function knownLimits(defaults: Limits): TenantLimits {
  return { default: defaults, of: (tenant) => known?.limits.get(tenant) ?? defaults };
}

/**
 * What was read in the last two seconds, by whatever request; the clock of workerd moves between requests. Never rejects:
 * what could not be read is refused where it is needed.
 */
export async function freshKnowledge(sql: Sql, defaults: Limits): Promise<Knowledge> {
  const stale = known;
  if (stale && Date.now() - stale.readAtMs <= KEYS_READ_EVERY_MS) return knowledgeOf(stale);
  try {
    const [{ keys, sealingId }, blocks, limits] = await Promise.all([
      cursorKeysOf(edge, sql).read(),
      readTokenBlocks(sql),
      readTenantLimits(sql, defaults),
      // Once: isolates that run go on while another version is set up, as processes do.
      stale ? undefined : assertServable(sql, kindsOver(sql).all),
    ]);
    known = { box: secretBox(keys, { sealingId }), blocks, limits, readAtMs: Date.now() };
    return knowledgeOf(known);
  } catch (error) {
    return noKnowledge(await explained(error, sql));
  }
}

/** A database that is not set up fails in many words; why is asked for only then. */
async function explained(error: unknown, sql: Sql): Promise<unknown> {
  const told = toCallerError(error, 'keys and blocks');
  if (told instanceof StatusError) return told;
  try {
    await assertServable(sql, kindsOver(sql).all);
    return told;
  } catch (reason) {
    return reason;
  }
}

function knowledgeOf({ box, blocks }: Known): Knowledge {
  return { box, blocks: { known: blocks, ageMs: 0, current: async () => blocks } };
}

/** Who is blocked must not come in, nor may a token be called malformed that a new key may have sealed. */
export function noKnowledge(cause: unknown): Knowledge {
  const refuse = (): never => {
    throw cause;
  };
  return {
    box: { seal: refuse, open: refuse, sealSeries: refuse, openSeries: refuse },
    blocks: {
      get known(): never {
        return refuse();
      },
      ageMs: Number.POSITIVE_INFINITY,
      current: async () => refuse(),
    },
  };
}

/** Blocks of tokens at the door: a token that is good may have been blocked, as a whole or for some tenants. */

import { StatusError } from '#core/status-error.ts';
import type { Caller } from '#core/identity.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { narrowCaller } from '#core/token-block.ts';

/**
 * The caller as far as it is not blocked.
 * @throws {StatusError} Unauthorized when all of it is; ServiceUnavailable when that cannot be told.
 */
export async function admit(blocks: TokenBlocks, caller: Caller): Promise<Caller> {
  const blocked = (await blocks.current()).blockedOf(caller);
  if (blocked === 'everything') throw tokenBlocked();
  return narrowCaller(caller, blocked);
}

export function tokenBlocked(): StatusError {
  return new StatusError('Unauthorized', 'the token is blocked; ask who runs this installation');
}

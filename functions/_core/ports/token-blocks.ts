/** PORT. The blocks of tokens as this process knows them: kept fresh beside the requests, so that none of them pays for it. */

import type { BlockSet } from '#core/token-block.ts';

export interface TokenBlocks {
  /** As they were when they were last read; the same object until something changes. A change is here within 3 s. */
  readonly known: BlockSet;

  /** How old that knowledge is, in milliseconds: a second or two, unless the blocks cannot be read. */
  readonly ageMs: number;

  /**
   * For a request: the blocks, which are not older than ten seconds; they are read again if they would be.
   * @throws {StatusError} ServiceUnavailable when they cannot be read: who is blocked must not come in meanwhile.
   */
  current(): Promise<BlockSet>;
}

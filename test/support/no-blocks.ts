/** Blocks of tokens where there are none. */

import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { createBlockSet } from '#core/token-block.ts';

const known = createBlockSet([]);

export const noBlocks: TokenBlocks = { known, ageMs: 0, current: async () => known };

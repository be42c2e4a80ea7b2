/** Where the cursor keys of this worker lie: in the database, or in its secret CURSOR_KEYS. */

import { randomBytes } from 'node:crypto';
import { textCursorKeys } from '#adapters/node/cursor-key-text.ts';
import { postgresCursorKeys } from '#adapters/postgres/cursor-keys.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import type { CursorKeys } from '#core/ports/cursor-keys.ts';
import type { EdgeConfig } from '#infra/cloudflare/config.ts';

export function cursorKeysOf({ config: { cursorKeys } }: Pick<EdgeConfig, 'config'>, sql: Sql): CursorKeys {
  return cursorKeys && 'text' in cursorKeys ? textCursorKeys(cursorKeys.text) : postgresCursorKeys(sql, randomBytes);
}

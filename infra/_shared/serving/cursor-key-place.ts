/** Where this installation's cursor keys lie: in the database, unless a file or a text was configured. */

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { type RotatingBox, rotatingBox } from '#adapters/ciphers/rotating-box.ts';
import { fileCursorKeyAdmin, fileCursorKeys } from '#adapters/node/cursor-key-file.ts';
import { textCursorKeys } from '#adapters/node/cursor-key-text.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import { postgresCursorKeyAdmin, postgresCursorKeys } from '#adapters/postgres/cursor-keys.ts';
import { withSession } from '#adapters/postgres/session.ts';
import type { CursorKeyAdmin, CursorKeys } from '#core/ports/cursor-keys.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import { withDatabase } from '#infra/_shared/database/find-database.ts';
import { assertOwnSchema } from '#infra/_shared/database/own-schema.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

export interface CursorKeyDeps {
  readonly config: Config;
  readonly sql: Sql;
  readonly logger: Logger;
}

/** The box of the keys, which follows them until the signal aborts. @throws {StartError} for a file that is none. */
export async function openCursorKeys(
  { config, sql, logger }: CursorKeyDeps,
  signal: AbortSignal,
): Promise<RotatingBox> {
  const { cursorKeys } = config;
  try {
    return await rotatingBox(placeOf(), signal, {
      onChange: ({ keys, sealingId }) =>
        logger.info({ keys: keys.map(({ id }) => id), sealing: sealingId }, 'cursor keys changed'),
      onError: (error) => logger.error({ err: error }, 'cursor keys cannot be read; those from before stay in use'),
    });
  } catch (error) {
    if (!cursorKeys) throw error;
    throw new StartError(`CURSOR_KEYS_FILE cannot be used: ${messageOf(error)}`, { cause: error });
  }

  function placeOf(): CursorKeys {
    if (!cursorKeys) return postgresCursorKeys(sql, randomBytes);
    return 'file' in cursorKeys ? fileCursorKeys(cursorKeys.file) : textCursorKeys(cursorKeys.text);
  }
}

/** Works on the keys of the configured place. @throws {StartError} for those that are set in the environment. */
export async function onCursorKeys<T>(config: Config, work: (admin: CursorKeyAdmin) => Promise<T>): Promise<T> {
  const { cursorKeys } = config;
  if (cursorKeys && 'text' in cursorKeys) {
    throw new StartError('the keys are those of CURSOR_KEYS: change them there; or use CURSOR_KEYS_FILE');
  }
  if (cursorKeys) return onFile(cursorKeys.file, work);
  return withDatabase(config, async (url) => {
    await assertOwnSchema(url);
    return withSession(url, { applicationName: 'plumbline cursor keys', pooler: 'any' }, (sql) =>
      work(postgresCursorKeyAdmin(sql, randomBytes)),
    );
  });
}

async function onFile<T>(file: string, work: (admin: CursorKeyAdmin) => Promise<T>): Promise<T> {
  try {
    return await work(fileCursorKeyAdmin(file));
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`CURSOR_KEYS_FILE: ${messageOf(error)}`, { cause: error });
  }
}

/** Ready-made tokens, one per file, for everyone who can read DATA_DIR: `$(cat .plumbline/tokens/admin)`. */

import { join } from 'node:path';
import type { Audience, Role } from '#core/identity.ts';
import { openPrivateDirectory, writePrivateFile } from '#infra/_shared/data-dir/data-directory.ts';
import { type DevelopmentIdentity, TOKENS_FOLDER } from '#infra/_shared/tokens/development-identity.ts';

const TTL_SECONDS = 30 * 24 * 60 * 60;

const TOKENS: readonly { readonly role: Role; readonly audience: Audience }[] = [
  { role: 'admin', audience: 'public' },
  { role: 'editor', audience: 'public' },
  { role: 'viewer', audience: 'public' },
  { role: 'controller', audience: 'private' },
];

/** Writes `DATA_DIR/tokens/<role>`: for all tenants, valid for 30 days. The files hold the token and nothing else. */
export async function writeTokenFiles(dataDir: string, identity: DevelopmentIdentity): Promise<void> {
  const directory = await openPrivateDirectory(dataDir, TOKENS_FOLDER);
  for (const { role, audience } of TOKENS) {
    const token = await identity.issueToken({
      subject: `development-${role}`,
      audience,
      roles: [role],
      tenants: '*',
      ttlSeconds: TTL_SECONDS,
    });
    await writePrivateFile(join(directory, role), token);
  }
}

/** The deployment that runs in a DATA_DIR: found by its run.json, its tokens signed with the key that lies there. */

import type { Audience } from '#core/identity.ts';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { readRunFile } from '#infra/_shared/data-dir/run-file.ts';
import type { Deployment, Target } from '#test/http/target.ts';

const TTL_SECONDS = 600;

/** @throws when nothing runs there. */
export async function deploymentIn(dataDir: string): Promise<Deployment> {
  const info = await readRunFile(dataDir);
  if (!info) throw new Error(`nothing runs in ${dataDir}: it has no run.json`);
  const keys = await loadDevelopmentIdentity(dataDir);
  return {
    targets: { public: target('public', info.publicUrl), private: target('private', info.controllerUrl) },
    opsUrl: info.opsUrl,
  };

  function target(audience: Audience, baseUrl: string): Target {
    return {
      audience,
      baseUrl,
      token: (grant) => keys.issueToken({ subject: 'test', audience, ttlSeconds: TTL_SECONDS, ...grant }),
    };
  }
}

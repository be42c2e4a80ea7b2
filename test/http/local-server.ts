/** Everything that `npm start` runs, in this process, on a database of its own. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';

import type { Audience } from '#core/identity.ts';
import { compose } from '#infra/_shared/life/compose.ts';
import { ownInstallation } from '#infra/_shared/database/installation.ts';
import { PROCESS_ROLES } from '#infra/_shared/settings/process-role.ts';
import { type Started, stopAll } from '#infra/_shared/life/started.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import type { Deployment, Target } from '#test/http/target.ts';
import { createTestDatabase } from '#test/support/postgres-server.ts';

export interface LocalServer extends Deployment {
  stop(): Promise<void>;
}

/** @param variablesFor gives variables besides, for a database that is ready. */
export async function startLocalServer(
  variablesFor: (databaseUrl: string) => Promise<Record<string, string>> = async () => ({}),
): Promise<LocalServer> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-http-'));
  const config = readConfig(
    {
      PORT: '0',
      CONTROLLER_PORT: '0',
      OPS_PORT: '0',
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      KINDS: 'test/http/kinds.ts',
      TENANT_GRACE_SECONDS: '1',
      // Suites that write as fast as they can share one tenant.
      TENANT_REQUESTS_PER_SECOND: '100000',
      ...(await variablesFor(database.url)),
    },
    { isTerminal: false },
  );
  const keys = await loadDevelopmentIdentity(dataDir);
  const logger = pino({ level: 'error' });
  const started: Started = [];
  const { opsUrl, listeners } = await compose(
    {
      config,
      databaseUrl: config.databaseUrl,
      installation: ownInstallation(database.url),
      roles: new Set(PROCESS_ROLES),
      logger,
      keys,
      stopSignal: new AbortController().signal,
    },
    started,
  );
  return {
    targets: {
      public: target('public', listeners?.publicUrl ?? ''),
      private: target('private', listeners?.controllerUrl ?? ''),
    },
    opsUrl,
    stop,
  };

  function target(audience: Audience, baseUrl: string): Target {
    return {
      audience,
      baseUrl,
      token: (grant) => keys.issueToken({ subject: 'test', audience, ttlSeconds: 600, ...grant }),
    };
  }

  async function stop(): Promise<void> {
    await stopAll(started, logger);
    await database.drop();
    await rm(dataDir, { recursive: true });
  }
}

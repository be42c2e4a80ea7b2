/**
 * Each kind of test is a project: `npm test -- --project unit`. All but the unit tests share one real PostgreSQL, and one
 * real Apache Kafka that is started when the first of them asks for it.
 */

import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config';
import { REPLACED } from '#test/support/pooled-modules.ts';
import { TestOrder } from './support/test-order.ts';

const WITH_SERVERS = ['contract', 'integration', 'http', 'property', 'fault'];
const TIMEOUT_MS = 60_000;
const isPooledRun = process.env['PLUMBLINE_TEST_POOLER'] === '1';

const config: ViteUserConfig = defineConfig({
  test: {
    // The machines that this runs on in CI have two cores, and a test keeps half a core busy on average: many wait.
    maxWorkers: 3,
    sequence: { sequencer: TestOrder },
    projects: [
      // Beside the others a test of a second can take many.
      project('unit', { testTimeout: TIMEOUT_MS }),
      ...WITH_SERVERS.map((name) => project(name, withServers())),
      // A start of workerd takes seconds, and a request some milliseconds more than on Node; some tests make a thousand.
      project('workerd', { ...withServers(), testTimeout: 3 * TIMEOUT_MS }),
      project('browser', withServers('test/support/global-browser.ts')),
    ],
  },
});

// vitest wants a default export.
export default config;

function project(name: string, test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return {
    extends: true,
    ...withPooler(),
    test: { name, include: [`test/${name}/**/*.test.ts`], setupFiles: setupFiles(), ...test },
  };
}

function setupFiles(): string[] {
  const always = ['test/support/end-with-runner.ts'];
  return isPooledRun ? [...always, 'test/support/pooler-differences.ts'] : always;
}

/** What opens connections is replaced; see `pooler-of-run.ts`. */
function withPooler(): TestProjectInlineConfiguration {
  if (!isPooledRun) return {};
  const alias = [...REPLACED].map(([find, url]) => ({ find, replacement: fileURLToPath(url) }));
  return { resolve: { alias } };
}

function withServers(...more: string[]): TestProjectInlineConfiguration['test'] {
  const globalSetup = ['test/support/global-postgres.ts', 'test/support/global-kafka.ts', ...more];
  return { globalSetup, testTimeout: TIMEOUT_MS, hookTimeout: TIMEOUT_MS };
}

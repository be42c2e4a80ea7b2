/** The suite of watch groups, against what `PLUMBLINE_DATA_DIR` names, or else against the local composition. */

import { afterAll, describe } from 'vitest';

import { deploymentIn } from '#test/http/deployment.ts';
import { startLocalServer, type LocalServer } from '#test/http/local-server.ts';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';

const dataDir = process.env['PLUMBLINE_DATA_DIR'];
let starting: Promise<LocalServer> | undefined;
afterAll(async () => (await starting)?.stop());

describe('watch groups', () => {
  watchGroupsSuite(() => (dataDir ? deploymentIn(dataDir) : (starting ??= startLocalServer())));
});

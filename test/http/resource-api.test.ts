/** The suite of the resource API, against what `PLUMBLINE_DATA_DIR` names, or else against the local composition. */

import { afterAll, describe } from 'vitest';

import { deploymentIn } from '#test/http/deployment.ts';
import { startLocalServer, type LocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import type { Deployment } from '#test/http/target.ts';

const dataDir = process.env['PLUMBLINE_DATA_DIR'];
let starting: Promise<LocalServer> | undefined;
const started = (): Promise<Deployment> => (dataDir ? deploymentIn(dataDir) : (starting ??= startLocalServer()));
afterAll(async () => (await starting)?.stop());

describe('the resource API for users', () => resourceApiSuite(async () => (await started()).targets.public));
describe('the resource API for controllers', () => resourceApiSuite(async () => (await started()).targets.private));

import { afterAll, describe } from 'vitest';

import { startLocalServer, type LocalServer } from '#test/http/local-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';

let starting: Promise<LocalServer> | undefined;
const started = (): Promise<LocalServer> => (starting ??= startLocalServer());
afterAll(async () => (await starting)?.stop());

describe('the resource API for users', () => resourceApiSuite(async () => (await started()).targets.public));
describe('the resource API for controllers', () => resourceApiSuite(async () => (await started()).targets.private));

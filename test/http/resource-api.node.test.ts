import { afterAll, describe } from 'vitest';

import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';

describe('the resource API on Node and PostgreSQL', () => {
  let server: Promise<ApiServer> | undefined;
  afterAll(async () => (await server)?.stop());

  resourceApiSuite(() => (server ??= startApiServer()));
});

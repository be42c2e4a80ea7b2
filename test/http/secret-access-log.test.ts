import { afterAll, expect, test } from 'vitest';

import type { Logger } from '#core/ports/logger.ts';
import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { uniqueName, useWorld } from '#test/http/resource-api/world.ts';

const lines: { readonly fields: object; readonly message: string }[] = [];
const keep = (fields: object, message: string): void => void lines.push({ fields, message });
const logger: Logger = { debug: keep, info: keep, warn: keep, error: keep, child: () => logger };

let starting: Promise<ApiServer> | undefined;
const world = useWorld(() => (starting ??= startApiServer({ audience: 'private', logger })));

afterAll(async () => (await starting)?.stop());

test('who has read which secrets is in the log, and no secret is', async () => {
  const vaults = `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
  const spec = { password: 'correct-horse-battery' };
  const { metadata } = (await world.editor.post(vaults, { metadata: { name: uniqueName('v') }, spec })).body;
  const path = `${vaults}/${metadata.name}/secrets`;
  expect((await world.viewer.get(path)).status).toBe(403);
  const answer = await world.controller.send('GET', path, undefined, { 'X-Request-Id': 'asked-by-test' });
  expect(answer.body.spec).toEqual(spec);
  const accesses = lines.filter(({ message }) => message === 'secrets were read');
  expect(accesses.map(({ fields }) => fields)).toEqual([
    {
      requestId: 'asked-by-test',
      subject: 'test',
      tenant: world.tenant,
      kind: 'example.dev/Vault',
      name: metadata.name,
      uid: metadata.uid,
    },
  ]);
  expect(lines.length).toBeGreaterThan(4);
  expect(JSON.stringify(lines)).not.toContain(spec.password);
});

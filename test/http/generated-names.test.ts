import { afterAll, beforeEach, expect, test } from 'vitest';

import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { expectStatus, useWorld } from '#test/http/resource-api/world.ts';

let suffixes: string[] = [];
let starting: Promise<ApiServer> | undefined;
const nameSuffix = (): string => suffixes.shift() ?? 'empty';
const world = useWorld(() => (starting ??= startApiServer({ nameSuffix })));

beforeEach(() => {
  suffixes = [];
});
afterAll(async () => (await starting)?.stop());

test('a generated name that is taken is followed by another, up to the eighth', async () => {
  expect((await world.editor.post(world.widgets, { metadata: { name: 'w-taken' } })).status).toBe(201);
  suffixes = [...Array<string>(7).fill('taken'), 'free2'];
  const answer = await world.editor.post(world.widgets, { metadata: { generateName: 'w-' } });
  expect(answer.status, answer.text).toBe(201);
  expect(answer.body.metadata.name).toBe('w-free2');
});

test('eight generated names that are taken are 409, and the ninth is not tried', async () => {
  expect((await world.editor.post(world.widgets, { metadata: { name: 'v-taken' } })).status).toBe(201);
  suffixes = [...Array<string>(8).fill('taken'), 'free2'];
  const answer = await world.editor.post(world.widgets, { metadata: { generateName: 'v-' } });
  expectStatus(answer, 409, 'AlreadyExists', 'generateName "v-"');
  expect(suffixes).toEqual(['free2']);
});

import { request } from 'node:http';
import { expect, test } from 'vitest';

import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const MIB = 1024 * 1024;

export function bodies(open: OpenTarget): void {
  const world = useWorld(open);

  test('that name something else than the URL are 400', async () => {
    const { metadata } = await createWidget(world);
    const right = { apiVersion: 'example.dev/v1', kind: 'Widget', metadata };
    for (const [wrong, words] of [
      [{ ...right, apiVersion: 'example.dev/v2' }, 'apiVersion'],
      [{ ...right, kind: 'Vault' }, 'kind'],
      [{ ...right, metadata: { ...metadata, name: 'other' } }, 'metadata.name'],
      [{ ...right, metadata: { ...metadata, namespace: 'other' } }, 'metadata.namespace'],
    ] as const) {
      expectStatus(await world.editor.put(world.widget(metadata.name), wrong), 400, 'BadRequest', words);
    }
    expectStatus(
      await world.editor.post(world.widgets, { metadata: { name: 'x', namespace: 'other' } }),
      400,
      'BadRequest',
    );
  });

  const inSpec = (text: string): string => `{"metadata":{"name":"x"},"spec":${text}}`;
  test.for([
    ['no bytes', '', 'the body is empty'],
    ['half an object', '{', 'position 1'],
    ['an object with a comma too many', '{"metadata":{"name":"x"},}', 'position 25'],
    ['a list', '[]', 'must be a JSON object'],
    ['a text', '"text"', 'must be a JSON object'],
    ['null', 'null', 'must be a JSON object'],
    ['a key twice', '{"metadata":{"name":"x","name":"y"}}', 'twice'],
    ['NUL in a text', inSpec('{"a":"\\u0000"}'), 'NUL'],
    ['NUL in a key', inSpec('{"a\\u0000":1}'), 'NUL'],
    ['half a surrogate pair', inSpec('{"a":"\\ud800"}'), 'surrogate'],
    ['an inexact integer', inSpec('{"a":9007199254740993}'), 'spec.a'],
    ['a number beyond all', inSpec('{"a":1e999}'), 'spec.a'],
    ['a number close to none', inSpec('{"a":1e-300}'), 'spec.a'],
    ['__proto__', inSpec('{"__proto__":{"size":1}}'), '__proto__'],
    ['a label "constructor"', '{"metadata":{"name":"x","labels":{"constructor":"x"}}}', 'constructor'],
    ['prototype', inSpec('{"prototype":1}'), 'prototype'],
    ['65 levels', inSpec('['.repeat(65) + ']'.repeat(65)), 'nested deeper'],
    ['100,000 objects in each other', '{"a":'.repeat(100_000), 'nested deeper'],
    ['a million brackets', '['.repeat(1_000_000), 'nested deeper'],
  ] as const)('of %s are 400', async ([, body, words]) => {
    for (const answer of [
      await world.editor.post(world.widgets, body),
      await world.editor.put(world.widget('x'), body),
      await world.editor.patch(world.widget('x'), body),
    ]) {
      expectStatus(answer, 400, 'BadRequest', words);
    }
  });

  test('that are not UTF-8 are 400', async () => {
    expectStatus(
      await world.editor.post(world.widgets, new Uint8Array([0x7b, 0xff, 0x7d])),
      400,
      'BadRequest',
      'UTF-8',
    );
  });

  test.for([
    ['POST', 'text/plain'],
    ['POST', 'application/merge-patch+json'],
    ['POST', 'application/x-www-form-urlencoded'],
    ['POST', 'application/json; charset=utf-16'],
    ['PUT', 'application/yaml'],
    ['PATCH', 'application/json'],
    ['PATCH', 'application/strategic-merge-patch+json'],
    ['PATCH', 'application/apply-patch+yaml'],
    ['DELETE', 'text/plain'],
  ] as const)('%s of type %s are 415', async ([method, type]) => {
    const path = method === 'POST' ? world.widgets : world.widget('x');
    const answer = await world.editor.send(method, path, '{}', { 'Content-Type': type });
    expectStatus(answer, 415, 'UnsupportedMediaType', 'accepted here: ');
  });

  test('that are compressed are 415', async () => {
    const answer = await world.editor.send('POST', world.widgets, '{}', { 'Content-Encoding': 'gzip' });
    expectStatus(answer, 415, 'UnsupportedMediaType', 'Content-Encoding');
  });

  test('above 1 MiB are 413, and the connection can still be used', async () => {
    const body = JSON.stringify({ metadata: { name: 'x' }, spec: { a: 'x'.repeat(MIB) } });
    expectStatus(await world.editor.post(world.widgets, body), 413, 'RequestEntityTooLarge');
    expectStatus(await world.editor.patch(world.widget('x'), body), 413, 'RequestEntityTooLarge');
    expect((await world.editor.get(world.widgets)).status).toBe(200);
  });

  test('of just under 1 MiB are taken', async () => {
    const name = uniqueName('w');
    const answer = await world.editor.post(world.widgets, { metadata: { name }, spec: { a: 'x'.repeat(MIB - 200) } });
    expect(answer.status).toBe(201);
    expectStatus(
      await world.editor.patch(world.widget(name), { spec: { b: 'x'.repeat(MIB / 2) } }),
      413,
      'RequestEntityTooLarge',
    );
    expect((await world.editor.delete(world.widget(name))).status).toBe(200);
  });

  test('without a length and without an end are refused after 1 MiB', async () => {
    const token = await world.target.token({ roles: ['editor'], tenants: [world.tenant] });
    const { status, sentBytes } = await sendEndlessly(world.target.baseUrl + world.widgets, token);
    expect(status).toBe(413);
    expect(sentBytes).toBeLessThan(64 * MIB);
  });

  test.for<[unknown, string, string]>([
    [{ metadata: { name: 5 } }, 'metadata.name', 'must be a text'],
    [{ metadata: { generateName: true } }, 'metadata.generateName', 'must be a text'],
    [{ metadata: null }, 'metadata', 'must be an object'],
    [{ metadata: [] }, 'metadata', 'must be an object'],
  ])('%j is 422 and says what it must be', async ([body, field, message]) => {
    const answer = await world.editor.post(world.widgets, body);
    expectStatus(answer, 422, 'Invalid', `${field}: ${message}`);
    expect(answer.body.details).toMatchObject({ group: 'example.dev', kind: 'widgets', causes: [{ field, message }] });
  });

  test('of a patch that makes no object of it is 422', async () => {
    const { metadata } = await createWidget(world);
    const patch = [{ op: 'replace', path: '', value: 1 }];
    const type = { 'Content-Type': 'application/json-patch+json' };
    const answer = await world.editor.send('PATCH', world.widget(metadata.name), patch, type);
    expectStatus(answer, 422, 'Invalid', 'is invalid: must be an object after the patch');
  });

  test('that break the schema or the rules of metadata are 422 with a cause for each field', async () => {
    const answer = await world.editor.post(world.widgets, {
      metadata: {
        name: 'x',
        labels: { 'bad key': 'x', ok: 'not ok!', number: 1 },
        annotations: { '/': 'x' },
        finalizers: ['not ok'],
        ownerReferences: [{ apiVersion: 'v1' }],
        resourceVersion: 'abc',
      },
    });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer).toSorted()).toEqual(
      [
        'metadata.annotations["/"]',
        'metadata.finalizers[0]',
        'metadata.labels["bad key"]',
        'metadata.labels.number',
        'metadata.labels.ok',
        'metadata.ownerReferences[0].kind',
        'metadata.ownerReferences[0].name',
        'metadata.ownerReferences[0].uid',
        'metadata.resourceVersion',
      ].toSorted(),
    );
    const spec = await world.editor.post(world.widgets, { metadata: { name: 'x' }, spec: { size: 'big' } });
    expect(spec.body.details.causes).toEqual([
      { reason: 'FieldValueTypeInvalid', message: expect.any(String), field: 'spec.size' },
    ]);
  });
}

/** A chunked body that goes on until the server answers. */
function sendEndlessly(url: string, token: string): Promise<{ status: number; sentBytes: number }> {
  return new Promise((resolve, reject) => {
    const chunk = Buffer.alloc(64 * 1024, ' ');
    let sentBytes = 0;
    let isAnswered = false;
    const outgoing = request(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
    });
    outgoing.on('response', (response) => {
      isAnswered = true;
      resolve({ status: response.statusCode ?? 0, sentBytes });
      outgoing.destroy();
    });
    outgoing.on('error', (error) => {
      if (!isAnswered) reject(error);
    });
    outgoing.on('drain', send);
    send();
    function send(): void {
      while (!isAnswered) {
        sentBytes += chunk.length;
        if (!outgoing.write(chunk)) return;
      }
    }
  });
}

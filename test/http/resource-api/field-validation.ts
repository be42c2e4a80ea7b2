import { expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { createWidget, expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

/** A vault drops what its schema does not know; a role binding refuses it. */
export function fieldValidation(open: OpenTarget): void {
  const world = useWorld(open);
  const vaults = (): string => `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;
  const bindings = (): string => `/apis/plumbline.dev/v1/namespaces/${world.tenant}/rolebindings`;

  function vault(query: string): Promise<Answer> {
    return world.editor.post(vaults() + query, {
      metadata: { name: uniqueName('v'), colour: 'red' },
      spec: { tier: 'large', teir: 'small', users: [{ name: 'ann', age: 7 }] },
      data: {},
    });
  }

  function binding(query: string): Promise<Answer> {
    const spec = { database: 'orders', subject: 'ann', role: 'reader', color: 'red', size: 1 };
    return world.editor.post(bindings() + query, { metadata: { name: uniqueName('b') }, spec });
  }

  test('Strict refuses unknown fields and names each', async () => {
    const answer = await vault('?fieldValidation=Strict');
    expectStatus(
      answer,
      400,
      'BadRequest',
      /^strict decoding error: unknown field "data", unknown field "metadata\.colour"/,
    );
    expect(answer.body.message).toContain('unknown field "spec.teir"');
    expect(fieldsOf(answer)).toEqual(['data', 'metadata.colour', 'spec.teir', 'spec.users[0].age']);
    const strict = await binding('?fieldValidation=Strict');
    expectStatus(strict, 400, 'BadRequest', 'unknown field "spec.color", unknown field "spec.size"');
  });

  test('Warn drops them and warns of each, and so it is without the parameter', async () => {
    for (const query of ['?fieldValidation=Warn', '?fieldValidation=', '']) {
      const answer = await vault(query);
      expect(answer.status, answer.text).toBe(201);
      expect(answer.headers.get('Warning')).toBe(
        [
          '299 - "unknown field \\"data\\""',
          '299 - "unknown field \\"metadata.colour\\""',
          '299 - "unknown field \\"spec.teir\\""',
          '299 - "unknown field \\"spec.users[0].age\\""',
        ].join(', '),
      );
      expect(answer.body.spec).toEqual({ tier: 'large', users: [{ name: 'ann' }] });
      expect(answer.body).not.toHaveProperty('data');
    }
    const refused = await binding('?fieldValidation=Warn');
    expect(refused.status, refused.text).toBe(201);
    expect(refused.headers.get('Warning')).toContain('unknown field \\"spec.size\\"');
    expect(refused.body.spec).toEqual({ database: 'orders', subject: 'ann', role: 'reader' });
  });

  test('Ignore drops them without a word', async () => {
    for (const answer of [await vault('?fieldValidation=Ignore'), await binding('?fieldValidation=Ignore')]) {
      expect(answer.status, answer.text).toBe(201);
      expect(answer.headers.get('Warning')).toBeNull();
    }
  });

  test('what a schema refuses is invalid where nobody has asked for anything else', async () => {
    const answer = await binding('');
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['spec.color', 'spec.size']);
  });

  test('holds for every kind of write', async () => {
    const { body } = await world.editor.post(vaults(), { metadata: { name: uniqueName('v') } });
    const path = `${vaults()}/${body.metadata.name}`;
    const spec = { ...body.spec, teir: 'small' };
    const query = '?fieldValidation=Strict';
    expectStatus(await world.editor.put(path + query, { ...body, spec }), 400, 'BadRequest', 'spec.teir');
    expectStatus(await world.editor.patch(path + query, { spec: { teir: 1 } }), 400, 'BadRequest', 'spec.teir');
    const operations = [{ op: 'add', path: '/spec/teir', value: 1 }];
    const json = await world.editor.send('PATCH', path + query, operations, {
      'Content-Type': 'application/json-patch+json',
    });
    expectStatus(json, 400, 'BadRequest', 'spec.teir');
    const put = await world.editor.put(path, { ...body, spec });
    expect(put.headers.get('Warning')).toBe('299 - "unknown field \\"spec.teir\\""');
    expect(put.body).toEqual(body);
    const patch = await world.editor.patch(path, { spec: { teir: 1 }, metadata: { labels: { a: 'b' } } });
    expect(patch.headers.get('Warning')).toBe('299 - "unknown field \\"spec.teir\\""');
    expect(patch.body.spec).toEqual(body.spec);
  });

  test('names that no header can hold are warned of in ASCII, and of many only the first', async () => {
    const spec = { 'ü "\\\n☃': 1, ...Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x${n}`, n])) };
    const answer = await world.editor.post(vaults(), { metadata: { name: uniqueName('v') }, spec });
    expect(answer.status, answer.text).toBe(201);
    const warning = answer.headers.get('Warning') ?? '';
    expect(warning).toMatch(/^[\x20-\x7e]+$/);
    expect(warning).toContain('and 81 more unknown fields');
    expect(warning.length).toBeLessThan(2000);
  });

  test('a field that stands twice is refused whatever is asked for, and each is named', async () => {
    const body = '{"metadata":{"name":"x","name":"y"},"spec":{"size":1,"size":1}}';
    for (const mode of ['Strict', 'Warn', 'Ignore']) {
      const answer = await world.editor.post(`${world.widgets}?fieldValidation=${mode}`, body);
      expectStatus(answer, 400, 'BadRequest', 'duplicate field "metadata.name", duplicate field "spec.size"');
      expect(fieldsOf(answer)).toEqual(['metadata.name', 'spec.size']);
    }
  });

  test('an unknown mode is 400, and a kind that takes any field knows them all', async () => {
    const { metadata } = await createWidget(world);
    const path = world.widget(metadata.name);
    expectStatus(await world.editor.patch(`${path}?fieldValidation=Loose`, {}), 400, 'BadRequest', 'fieldValidation');
    const answer = await world.editor.patch(`${path}?fieldValidation=Strict`, { spec: { anything: 1 } });
    expect(answer.status, answer.text).toBe(200);
  });
}

import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';

import { clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const INDEX = '/openapi/v3';

export function openApi(open: OpenTarget): void {
  const world = useWorld(open);

  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  async function document(groupVersion: string): Promise<any> {
    const { status, body, text } = await world.viewer.get(`${INDEX}/apis/${groupVersion}`);
    expect(status, text).toBe(200);
    return body;
  }

  test('the index leads to a valid document of each group and version', async () => {
    const { body } = await world.viewer.get(`${INDEX}?timeout=32s`);
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining(['apis/plumbline.dev/v1', 'apis/example.dev/v1', 'apis/example.dev/v1beta1']),
    );
    for (const [path, { serverRelativeURL }] of Object.entries<{ serverRelativeURL: string }>(body.paths)) {
      expect(serverRelativeURL).toMatch(new RegExp(`^${INDEX}/${path}\\?hash=[0-9a-f]{64}$`));
      const answer = await world.viewer.get(serverRelativeURL);
      expect(answer.headers.get('Cache-Control')).toContain('immutable');
      const { valid, errors } = await new Validator().validate(answer.body);
      expect(errors).toBeUndefined();
      expect(valid).toBe(true);
    }
  });

  test('every reference leads somewhere, and operations have ids of their own', async () => {
    for (const groupVersion of ['plumbline.dev/v1', 'example.dev/v1', 'example.dev/v1beta1']) {
      const content = await document(groupVersion);
      const text = JSON.stringify(content);
      for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
        expect(content.components.schemas).toHaveProperty([name]);
      }
      const ids = [...text.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  test('a kind has its paths, and a PATCH that kubectl leaves the validation to', async () => {
    const { paths } = await document('example.dev/v1');
    const one = '/apis/example.dev/v1/namespaces/{namespace}/widgets/{name}';
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([
        '/apis/example.dev/v1/widgets',
        '/apis/example.dev/v1/namespaces/{namespace}/widgets',
        one,
        `${one}/status`,
        '/apis/example.dev/v1/planets/{name}',
      ]),
    );
    expect(paths[one].patch['x-kubernetes-group-version-kind']).toEqual({
      group: 'example.dev',
      version: 'v1',
      kind: 'Widget',
    });
    expect(paths[one].patch.parameters).toContainEqual(
      expect.objectContaining({ name: 'fieldValidation', in: 'query' }),
    );
    expect(Object.keys(paths['/apis/example.dev/v1/planets'])).toEqual(['get', 'post']);
  });

  test('a write names what it takes and what it answers: If-Match where there is an object to match, 201 for a new one', async () => {
    const { paths } = await document('example.dev/v1');
    const all = '/apis/example.dev/v1/namespaces/{namespace}/widgets';
    const one = paths[`${all}/{name}`];
    const status = paths[`${all}/{name}/status`];
    const ifMatch = expect.objectContaining({ name: 'If-Match', in: 'header' });
    const dryRun = expect.objectContaining({ name: 'dryRun', in: 'query' });
    for (const operation of [one.put, one.patch, one.delete, status.put, status.patch]) {
      expect(operation.parameters).toEqual(expect.arrayContaining([ifMatch, dryRun]));
    }
    const { post } = paths[all];
    expect(post.parameters).toContainEqual(dryRun);
    expect(post.parameters).not.toContainEqual(ifMatch);
    expect([post, one.put, one.delete].map(({ responses }) => Object.keys(responses))).toEqual([
      ['201', 'default'],
      ['200', 'default'],
      ['200', '202', 'default'],
    ]);
  });

  test('what lists and objects have is in their schemas, and nothing that no list has', async () => {
    const { components } = await document('example.dev/v1');
    const { properties } = components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta'];
    expect(Object.keys(properties).toSorted()).toEqual(['continue', 'cursor', 'remainingItemCount']);
    const { metadata } = (await createWidget(world)) as { metadata: object };
    const objectMeta = components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'];
    for (const field of Object.keys(metadata)) expect(objectMeta.properties).toHaveProperty(field);
    const list = (await world.viewer.get(`${world.widgets}?limit=1`)).body;
    for (const field of Object.keys(list.metadata)) expect(properties).toHaveProperty(field);
  });

  test('a schema says what the kind does: bounds, defaults, required and closed objects', async () => {
    const { components } = await document('plumbline.dev/v1');
    const database = components.schemas['dev.plumbline.v1.ManagedDatabase'];
    expect(database.properties.spec).toMatchObject({
      additionalProperties: false,
      properties: {
        server: { type: 'string', default: 'local' },
        connectionLimit: { type: 'integer', minimum: 1, maximum: 10_000 },
        deletionPolicy: { enum: ['Delete', 'Retain'], default: 'Delete' },
      },
    });
    expect(database.properties.spec).not.toHaveProperty('required');
    expect(components.schemas['dev.plumbline.v1.RoleBinding'].properties.spec.required).toEqual([
      'database',
      'subject',
      'role',
    ]);
    expect(database['x-kubernetes-group-version-kind']).toEqual([
      { group: 'plumbline.dev', version: 'v1', kind: 'ManagedDatabase' },
    ]);
  });

  test('secret fields are write-only, also those that a schema does not name', async () => {
    const { components } = await document('example.dev/v1beta1');
    const { spec, status } = components.schemas['dev.example.v1beta1.Vault'].properties;
    expect(spec.properties.password).toEqual({ type: 'string', minLength: 8, writeOnly: true });
    expect(spec.properties.users.items.properties).toEqual({
      name: { type: 'string' },
      admin: { type: 'boolean' },
      token: { type: 'string', writeOnly: true },
    });
    expect(status.properties).toMatchObject({ unsealKey: { writeOnly: true } });
    expect(spec.properties.tier).not.toHaveProperty('writeOnly');
    const shipped = (await document('plumbline.dev/v1')).components.schemas['dev.plumbline.v1.ManagedDatabase'];
    expect(JSON.stringify(shipped.properties.status).match(/"writeOnly":true/g)).toHaveLength(1);
  });

  test('an immutable field says so in the words of Kubernetes', async () => {
    const { components } = await document('example.dev/v1');
    const { spec } = components.schemas['dev.example.v1.Disk'].properties;
    const immutable = [{ rule: 'self == oldSelf', message: 'field is immutable' }];
    expect(spec.properties.zone).toEqual({ type: 'string', 'x-kubernetes-validations': immutable });
    expect(spec.properties.encryption.properties.cipher).toEqual({
      type: 'string',
      'x-kubernetes-validations': immutable,
    });
    expect(spec.properties.size).toEqual({ type: 'number' });
  });

  describe('caching', () => {
    test('who has the document already is told so, without it', async () => {
      for (const path of [INDEX, `${INDEX}/apis/example.dev/v1`]) {
        const first = await world.viewer.get(path);
        const tag = first.headers.get('ETag') ?? '';
        expect(tag).toMatch(/^(W\/)?"[0-9a-f]{64}"$/);
        expect(first.headers.get('Cache-Control')).toBe('no-cache, private');
        const again = await world.viewer.send('GET', path, undefined, { 'If-None-Match': `"other", ${tag}` });
        expect([again.status, again.text, again.headers.get('ETag')]).toEqual([304, '', tag.replace('W/', '')]);
        const other = await world.viewer.send('GET', path, undefined, { 'If-None-Match': '"other"' });
        expect(other.status).toBe(200);
      }
    });

    test('an address with an old hash has to ask again', async () => {
      const answer = await world.viewer.get(`${INDEX}/apis/example.dev/v1?hash=${'0'.repeat(64)}`);
      expect([answer.status, answer.headers.get('Cache-Control')]).toEqual([200, 'no-cache, private']);
    });
  });

  test('nobody reads it without a token, and no document names a tenant', async () => {
    const nobody = clientWith(world.target.baseUrl, undefined);
    for (const path of [INDEX, `${INDEX}/apis/example.dev/v1`, `${INDEX}/apis/no.such.group/v1`]) {
      expectStatus(await nobody.get(path), 401, 'Unauthorized');
    }
    for (const path of [INDEX, `${INDEX}/apis/plumbline.dev/v1`, `${INDEX}/apis/example.dev/v1`]) {
      const { text } = await world.admin.get(path);
      expect(text).not.toContain(world.tenant);
      expect(text).toBe((await world.viewer.get(path)).text);
    }
  });

  test('what is not served has no document, and documents are only read', async () => {
    expectStatus(await world.viewer.get(`${INDEX}/apis/example.dev/v2`), 404, 'NotFound', INDEX);
    expectStatus(await world.viewer.get(`${INDEX}/apis/__proto__/constructor`), 404, 'NotFound');
    expectStatus(await world.admin.post(INDEX, {}), 405, 'MethodNotAllowed');
  });
}

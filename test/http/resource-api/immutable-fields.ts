import { beforeAll, expect, test } from 'vitest';

import { expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function immutableFields(open: OpenTarget): void {
  const world = useWorld(open);
  let disks: string;

  beforeAll(() => {
    disks = `/apis/example.dev/v1/namespaces/${world.tenant}/disks`;
  });

  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  async function createDisk(spec: object): Promise<{ path: string; body: any }> {
    const name = uniqueName('d');
    const { status, body, text } = await world.editor.post(disks, { metadata: { name }, spec });
    expect(status, text).toBe(201);
    return { path: `${disks}/${name}`, body };
  }

  test('a replacement that changes one is refused with the field and the reason, and changes nothing', async () => {
    const { path, body } = await createDisk({ zone: 'a', size: 1 });
    const answer = await world.editor.put(path, { ...body, spec: { ...body.spec, zone: 'b', size: 2 } });
    expectStatus(answer, 422, 'Invalid', 'spec.zone: field is immutable');
    expect(answer.body.details).toEqual({
      name: body.metadata.name,
      group: 'example.dev',
      kind: 'disks',
      causes: [{ reason: 'FieldValueInvalid', message: 'field is immutable', field: 'spec.zone' }],
    });
    expect((await world.editor.get(path)).body).toEqual(body);
  });

  test('a write that was made from another state is told so first', async () => {
    const { path, body } = await createDisk({ zone: 'a', size: 1 });
    const spec = { ...body.spec, zone: 'b' };
    const patched = await world.editor.patch(path, { spec: { size: 2 } });
    const stale = [
      body.metadata,
      { ...patched.body.metadata, uid: crypto.randomUUID() },
      { name: body.metadata.name, resourceVersion: '1' },
    ];
    for (const metadata of stale) {
      const answer = await world.editor.put(path, { ...body, metadata, spec });
      expectStatus(answer, 409, 'Conflict');
      expect(answer.body.details).toMatchObject({ name: body.metadata.name, group: 'example.dev', kind: 'disks' });
      const { uid, resourceVersion } = metadata;
      expectStatus(await world.editor.patch(path, { metadata: { uid, resourceVersion }, spec }), 409, 'Conflict');
    }
    const { resourceVersion: _, ...unversioned } = body.metadata;
    const byHeader = await world.editor.send('PUT', path, { metadata: unversioned, spec }, { 'If-Match': '"1"' });
    expectStatus(byHeader, 409, 'Conflict');
    expect((await world.editor.get(path)).body).toEqual(patched.body);
  });

  test('a patch that changes some is refused with one cause for each', async () => {
    const { path, body } = await createDisk({ zone: 'a', encryption: { cipher: 'aes' } });
    const answer = await world.editor.patch(path, { spec: { zone: 'b', format: 'raw', encryption: null } });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['spec.zone', 'spec.format', 'spec.encryption.cipher']);
    expect((await world.editor.get(path)).body).toEqual(body);
  });

  test('everything else can change, and what stays as it is can be sent', async () => {
    const { path, body } = await createDisk({ zone: 'a', size: 1 });
    const replaced = await world.editor.put(path, { ...body, spec: { ...body.spec, size: 2 } });
    expect([replaced.status, replaced.body.spec]).toEqual([200, { zone: 'a', format: 'plain', size: 2 }]);
    const patched = await world.editor.patch(path, { metadata: { labels: { a: 'b' } }, spec: { zone: 'a', size: 3 } });
    expect([patched.status, patched.body.spec.size]).toEqual([200, 3]);
  });

  test('one that has a default may be left out, and keeps the default only', async () => {
    const plain = await createDisk({ zone: 'a' });
    const metadata = plain.body.metadata;
    expect((await world.editor.put(plain.path, { metadata, spec: { zone: 'a', size: 1 } })).status).toBe(200);
    const raw = await createDisk({ zone: 'a', format: 'raw' });
    const answer = await world.editor.put(raw.path, { metadata: raw.body.metadata, spec: { zone: 'a' } });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['spec.format']);
  });

  test('one that was absent cannot come', async () => {
    const { path } = await createDisk({ zone: 'a' });
    const answer = await world.editor.patch(path, { spec: { encryption: { cipher: 'aes' } } });
    expectStatus(answer, 422, 'Invalid');
    expect(fieldsOf(answer)).toEqual(['spec.encryption.cipher']);
  });

  test('is no way to tell a secret beside it: a guess is written, right or wrong', async () => {
    const { path } = await createDisk({ zone: 'a', encryption: { key: 'hunter2' } });
    for (const key of ['hunter2', 'letmein']) {
      expect((await world.editor.patch(path, { spec: { encryption: { key } } })).status).toBe(200);
    }
  });
}

import { describe, expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const SECRET = 'correct-horse-battery';

export function secrets(open: OpenTarget): void {
  const world = useWorld(open);
  const vaults = (): string => `/apis/example.dev/v1beta1/namespaces/${world.tenant}/vaults`;

  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  async function createVault(spec: object): Promise<any> {
    const answer = await world.editor.post(vaults(), { metadata: { name: uniqueName('v') }, spec });
    expect(answer.status, answer.text).toBe(201);
    return answer.body;
  }

  /** Whether the store still holds the secret: a write of the same value changes nothing then, and only then. */
  async function holds(name: string, spec: object): Promise<boolean> {
    const before = (await world.editor.get(`${vaults()}/${name}`)).body;
    const after = (await world.editor.patch(`${vaults()}/${name}`, { spec })).body;
    return before.metadata.resourceVersion === after.metadata.resourceVersion;
  }

  test('a secret is in no answer', async () => {
    const { metadata } = await createVault({ password: SECRET, users: [{ name: 'ann', token: SECRET }] });
    const path = `${vaults()}/${metadata.name}`;
    const withKey = await world.controller.patch(`${path}/status`, { status: { unsealKey: SECRET, phase: 'Open' } });
    const answers = [
      withKey,
      await world.editor.get(path),
      await world.controller.get(`${path}/status`),
      await world.admin.get(vaults()),
      await world.editor.patch(path, { metadata: { labels: { a: 'b' } } }),
      await world.editor.put(path, { ...withKey.body, metadata: { ...withKey.body.metadata, resourceVersion: '1' } }),
      await world.editor.delete(path),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200, 409, 202]);
    for (const answer of answers) expect(answer.text).not.toContain(SECRET);
    expect(answers[1]?.body).toMatchObject({
      spec: { tier: 'small', users: [{ name: 'ann' }] },
      status: { phase: 'Open' },
    });
  });

  test('an error about a secret does not quote it', async () => {
    const answer = await world.editor.post(vaults(), {
      metadata: { name: uniqueName('v') },
      spec: { password: 'hunter2' },
    });
    expect(fieldsOf(answer)).toEqual(['spec.password']);
    expect(answer.body.message).toContain('spec.password: must be at least 8 long');
    expect(answer.text).not.toContain('hunter2');
  });

  test('writing back what was read keeps the secrets', async () => {
    const { metadata } = await createVault({
      password: SECRET,
      users: [
        { name: 'ann', token: 'token-of-ann' },
        { name: 'bob', token: 'token-of-bob' },
      ],
    });
    const path = `${vaults()}/${metadata.name}`;
    const read = (await world.editor.get(path)).body;
    expect((await world.editor.put(path, read)).body).toEqual(read);
    const changed = await world.editor.put(path, {
      ...read,
      spec: { tier: 'large', users: [{ name: 'bob' }, { name: 'eve' }] },
    });
    expect(changed.body.spec).toEqual({ tier: 'large', users: [{ name: 'bob' }, { name: 'eve' }] });
    expect(await holds(metadata.name, { password: SECRET })).toBe(true);
    expect(await holds(metadata.name, { users: [{ name: 'bob', token: 'token-of-bob' }, { name: 'eve' }] })).toBe(true);
    expect(await holds(metadata.name, { password: 'another-password' })).toBe(false);
  });

  test('a patch keeps what it does not name, and removes by null', async () => {
    const { metadata } = await createVault({ password: SECRET });
    const path = `${vaults()}/${metadata.name}`;
    await world.editor.patch(path, { spec: { tier: 'large' } });
    expect(await holds(metadata.name, { password: SECRET })).toBe(true);
    await world.editor.patch(path, { spec: { password: null } });
    expect(await holds(metadata.name, { password: null })).toBe(true);
    expect(await holds(metadata.name, { password: SECRET })).toBe(false);
  });

  test('a status keeps its own secrets', async () => {
    const { metadata } = await createVault({});
    const path = `${vaults()}/${metadata.name}/status`;
    const first = (await world.controller.patch(path, { status: { unsealKey: SECRET, n: 1 } })).body;
    const second = (await world.controller.put(path, { ...first, status: { n: 2 } })).body;
    expect(second.status).toEqual({ n: 2 });
    const same = await world.controller.patch(path, { status: { unsealKey: SECRET } });
    expect(same.body.metadata.resourceVersion).toBe(second.metadata.resourceVersion);
  });

  describe('in what kubectl apply notes', () => {
    const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
    const manifest = (name: string, spec: object): object => ({
      apiVersion: 'example.dev/v1beta1',
      kind: 'Vault',
      metadata: { annotations: {}, name, namespace: world.tenant },
      spec,
    });
    const applied = (name: string, spec: object): object => ({
      metadata: { name, annotations: { [LAST_APPLIED]: `${JSON.stringify(manifest(name, spec))}\n` } },
      spec,
    });

    test('no secret is stored, whatever writes it, and the rest of it stays', async () => {
      const name = uniqueName('v');
      const spec = { password: SECRET, tier: 'large', users: [{ name: 'ann', token: SECRET }] };
      const path = `${vaults()}/${name}`;
      const made = await world.editor.post(vaults(), applied(name, spec));
      const { metadata } = made.body;
      const jsonPatch = [
        {
          op: 'replace',
          path: '/metadata/annotations',
          value: { [LAST_APPLIED]: JSON.stringify(manifest(name, spec)) },
        },
      ];
      const answers = [
        made,
        await world.editor.put(path, { ...made.body, metadata: { ...metadata, ...metadataOf(applied(name, spec)) } }),
        await world.editor.patch(path, applied(name, { ...spec, password: `${SECRET}-2` })),
        await world.editor.send('PATCH', path, jsonPatch, { 'Content-Type': 'application/json-patch+json' }),
        await world.viewer.get(path),
        await world.viewer.get(vaults()),
      ];
      expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200]);
      for (const { text } of answers) expect(text).not.toContain(SECRET);
      const kept = JSON.parse(answers[4]?.body.metadata.annotations[LAST_APPLIED]);
      expect(kept).toEqual(manifest(name, { tier: 'large', users: [{ name: 'ann' }] }));
    });

    test('the same manifest again changes nothing', async () => {
      const name = uniqueName('v');
      const body = applied(name, { password: SECRET, tier: 'large' });
      const made = await world.editor.post(vaults(), body);
      const again = await world.editor.patch(`${vaults()}/${name}`, body);
      expect(again.status, again.text).toBe(200);
      expect(again.body).toEqual(made.body);
    });

    test('a manifest without secrets stays word for word', async () => {
      const name = uniqueName('v');
      const text = '{"kind":"Vault",  "spec":{"tier":"small"}}\n';
      const { body } = await world.editor.post(vaults(), { metadata: { name, annotations: { [LAST_APPLIED]: text } } });
      expect(body.metadata.annotations[LAST_APPLIED]).toBe(text);
    });

    test.for([`password: ${SECRET}`, `{"spec":{"password":"${SECRET}"},"spec":{}}`, `["${SECRET}"]`])(
      'a text that is no manifest is 422, and not quoted: %s',
      async (text) => {
        const metadata = { name: uniqueName('v'), annotations: { [LAST_APPLIED]: text } };
        const answer = await world.editor.post(vaults(), { metadata });
        expectStatus(answer, 422, 'Invalid', 'must be a manifest as JSON');
        expect(fieldsOf(answer)).toEqual([`metadata.annotations["${LAST_APPLIED}"]`]);
        expect(answer.text).not.toContain(SECRET);
        expect((await world.editor.post(world.widgets, { metadata })).status).toBe(201);
      },
    );
  });

  describe('a dry run does not tell whether a secret was guessed', () => {
    const guesses = ['a-wrong-guess', SECRET];

    test.each([
      ['a merge patch', (password: string) => ({ spec: { password } }), 'application/merge-patch+json'],
      [
        'a JSON patch',
        (password: string) => [{ op: 'add', path: '/spec/password', value: password }],
        'application/json-patch+json',
      ],
    ] as const)('by %s', async (_what, patch, type) => {
      const { metadata } = await createVault({ password: SECRET });
      const path = `${vaults()}/${metadata.name}?dryRun=All`;
      const [wrong, right] = await Promise.all(
        guesses.map((guess) => world.editor.send('PATCH', path, patch(guess), { 'Content-Type': type })),
      );
      expect(wrong?.status, wrong?.text).toBe(200);
      expect(wrong?.body.metadata.generation).toBe(2);
      expect(right?.body).toEqual(wrong?.body);
    });

    test('by a PUT, an element of a list, or its removal', async () => {
      const object = await createVault({ password: SECRET, users: [{ name: 'ann', token: SECRET }] });
      const path = `${vaults()}/${object.metadata.name}?dryRun=All`;
      const put = (spec: object): Promise<Answer> => world.editor.put(path, { ...object, spec });
      const answers = [
        ...(await Promise.all(guesses.map((password) => put({ ...object.spec, password })))),
        ...(await Promise.all(guesses.map((token) => put({ ...object.spec, users: [{ name: 'ann', token }] })))),
        await world.editor.patch(path, { spec: { password: null } }),
      ];
      for (const answer of answers) {
        expect(answer.body, answer.text).toEqual({ ...object, metadata: { ...object.metadata, generation: 2 } });
      }
      expect((await put(object.spec)).body).toEqual(object);
    });

    test('nor does a caller that may write metadata alone learn it', async () => {
      const { metadata } = await createVault({ password: SECRET });
      for (const password of guesses) {
        const answer = await world.controller.patch(`${vaults()}/${metadata.name}`, { spec: { password } });
        expectStatus(answer, 403, 'Forbidden', 'change the spec');
      }
    });
  });

  describe('what a kind declares', () => {
    test('its defaults and its pruning are what is stored', async () => {
      const { spec, metadata } = await createVault({ unknown: true, users: [{ name: 'ann', age: 7 }] });
      expect(spec).toEqual({ tier: 'small', users: [{ name: 'ann' }] });
      expect(metadata.finalizers).toEqual(['example.dev/vault']);
    });

    test('its finalizer joins those of the client', async () => {
      const { body } = await world.editor.post(vaults(), {
        metadata: { name: uniqueName('v'), finalizers: ['example.dev/other'] },
      });
      expect(body.metadata.finalizers).toEqual(['example.dev/other', 'example.dev/vault']);
    });

    test('the shipped kinds refuse what they do not know, field by field', async () => {
      const path = `/apis/plumbline.dev/v1/namespaces/${world.tenant}/rolebindings`;
      const answer = await world.editor.post(path, {
        metadata: { name: 'x' },
        spec: { database: 'orders', subject: 'ann', role: 'king', color: 'red', size: 1 },
      });
      expect(answer.status).toBe(422);
      expect(fieldsOf(answer)).toEqual(['spec.role', 'spec.color', 'spec.size']);
      const { body } = await world.editor.post(`/apis/plumbline.dev/v1/namespaces/${world.tenant}/manageddatabases`, {
        metadata: { name: 'orders' },
        spec: {},
      });
      expect(body.spec).toEqual({ server: 'local', adoptionPolicy: 'Never', deletionPolicy: 'Delete' });
    });
  });
}

function metadataOf({ metadata }: { readonly metadata?: object }): object {
  return metadata ?? {};
}

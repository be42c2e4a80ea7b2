import { beforeEach, describe, expect, test } from 'vitest';

import type { Answer } from '#test/http/client.ts';
import { expectStatus, fieldsOf, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

const DNS = 'example.dev/dns';
const TLS = 'example.dev/tls';
const resolvable = { type: 'Resolvable', status: 'True', reason: 'Found' };
const certified = { type: 'Certified', status: 'False', reason: 'Pending' };

export function reports(open: OpenTarget): void {
  const world = useWorld(open);
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
  let object: any;
  let path: string;

  beforeEach(async () => {
    const sites = `/apis/example.dev/v1/namespaces/${world.tenant}/sites`;
    const created = await world.editor.post(sites, { metadata: { name: uniqueName('s') }, spec: { n: 1 } });
    object = created.body;
    path = `${sites}/${object.metadata.name}`;
  });

  const report = (controller: string, status: unknown, token?: number | string): Promise<Answer> =>
    world.controller.patch(
      `${path}/status?fieldManager=${controller}${token === undefined ? '' : `&fencingToken=${token}`}`,
      { status },
    );

  test('each controller elsewhere writes its own part, and what it leaves out of others stays', async () => {
    expect((await report(DNS, { address: '::1', conditions: [resolvable] })).status).toBe(200);
    expect((await report(TLS, { certificate: 'c', conditions: [certified] })).status).toBe(200);
    const { body } = await report(DNS, { address: null, conditions: [{ ...resolvable, status: 'False' }] });
    expect(body.status).toEqual({
      certificate: 'c',
      conditions: [
        { ...certified, lastTransitionTime: expect.any(String) },
        { ...resolvable, status: 'False', lastTransitionTime: expect.any(String) },
      ],
    });
    // Its own, left out, are gone.
    expect((await report(DNS, { conditions: [] })).body.status.conditions).toMatchObject([certified]);
  });

  test('a whole status that was read is written with its own part changed, as Kubernetes clients do', async () => {
    const { body } = await report(TLS, { certificate: 'c', conditions: [certified] });
    const whole = { ...body, status: { ...body.status, address: '::1', observedGeneration: 1 } };
    const answer = await world.controller.put(`${path}/status?fieldManager=${DNS}`, whole);
    expect(answer.body.status).toEqual({ ...whole.status, observedGeneration: 0 });
    expectStatus(await world.controller.put(`${path}/status?fieldManager=${DNS}`, whole), 409, 'Conflict');
  });

  test.for([
    ['condition Certified', { conditions: [{ ...certified, status: 'True' }] }],
    ['field certificate', { certificate: 'forged' }],
    ['field colour', { colour: 'blue' }],
    ['field resources', { resources: [] }],
  ] as const)('a report of the %s, which is not its own, is refused', async ([part, status]) => {
    await report(TLS, { certificate: 'c', conditions: [certified] });
    const before = (await world.viewer.get(path)).body;
    expectStatus(await report(DNS, status), 403, 'Forbidden', `controller ${DNS} does not own the ${part}`);
    expect((await world.viewer.get(path)).body).toEqual(before);
  });

  test('who does not say which controller it is writes beside their parts alone', async () => {
    await report(DNS, { address: '::1', conditions: [resolvable] });
    for (const manager of ['', '?fieldManager=kubectl']) {
      const send = (status: unknown): Promise<Answer> => world.controller.patch(`${path}/status${manager}`, { status });
      expectStatus(await send({ address: 'x' }), 403, 'Forbidden', `status.address belongs to controller ${DNS}`);
      expectStatus(await send({ conditions: [] }), 403, 'Forbidden', `Resolvable belongs to controller ${DNS}`);
      expectStatus(await send({ observedGeneration: 1 }), 403, 'Forbidden', 'observedGeneration');
      expect((await send({ [`beside${manager.length}`]: 1 })).status).toBe(200);
    }
  });

  test('the same report again writes nothing', async () => {
    const said = { address: '::1', conditions: [resolvable], observedGeneration: 1 };
    const first = await report(DNS, said, 1);
    expect((await report(DNS, said, 1)).body).toEqual(first.body);
    expect((await report(DNS, said, 2)).body).toEqual(first.body);
  });

  describe('observedGeneration', () => {
    test('of the object is what every controller elsewhere has seen', async () => {
      expect((await report(DNS, { observedGeneration: 1 })).body.status).toEqual({ observedGeneration: 0 });
      expect((await report(TLS, { observedGeneration: 1 })).body.status).toEqual({ observedGeneration: 1 });
      await world.editor.patch(path, { spec: { n: 2 } });
      expect((await report(TLS, { observedGeneration: 2 })).body.status).toEqual({ observedGeneration: 1 });
      expect((await report(DNS, { address: 'a' })).body.status).toMatchObject({ observedGeneration: 1 });
      expect((await report(DNS, { observedGeneration: 2 })).body.status).toMatchObject({ observedGeneration: 2 });
    });

    test('of each of them never goes back, and is never above the generation', async () => {
      await world.editor.patch(path, { spec: { n: 2 } });
      expectStatus(await report(DNS, { observedGeneration: 3 }), 422, 'Invalid', 'above metadata.generation');
      expect((await report(DNS, { observedGeneration: 2 })).status).toBe(200);
      expectStatus(await report(DNS, { observedGeneration: 1 }), 409, 'Conflict', 'cannot go back from 2 to 1');
      for (const wrong of [-1, 0.5, '1', [1]]) {
        expectStatus(await report(DNS, { observedGeneration: wrong }), 422, 'Invalid', 'must be an integer');
      }
    });
  });

  describe('fencing', () => {
    test('a holder that was replaced writes nothing more, whatever it read', async () => {
      expect((await report(DNS, { address: 'old' }, 7)).status).toBe(200);
      expect((await report(DNS, { address: 'new' }, 8)).status).toBe(200);
      const { body: current } = await world.viewer.get(path);
      const stale = [
        await report(DNS, { address: 'late' }, 7),
        await report(DNS, { address: 'none' }),
        await world.controller.put(`${path}/status?fieldManager=${DNS}&fencingToken=7`, {
          ...current,
          status: { ...current.status, address: 'late' },
        }),
      ];
      for (const answer of stale) {
        expectStatus(answer, 409, 'Fenced', 'higher fencing token');
        expect(answer.body.details.causes).toMatchObject([{ reason: 'StaleFencingToken', field: 'fencingToken' }]);
      }
      expect((await world.viewer.get(path)).body).toEqual(current);
      expect((await report(DNS, { address: 'newer' }, 8)).status).toBe(200);
    });

    test('a report that changes nothing fences the holder before it too', async () => {
      await report(DNS, { address: 'a' }, 1);
      await report(DNS, { address: 'a' }, 2);
      expectStatus(await report(DNS, { address: 'b' }, 1), 409, 'Fenced');
    });

    test('each controller has tokens of its own, and a dry run leaves none', async () => {
      await report(DNS, { address: 'a' }, 9);
      expect((await report(TLS, { certificate: 'c' }, 1)).status).toBe(200);
      expect((await report(TLS, { certificate: 'd' }, '2&dryRun=All')).body.status.certificate).toBe('d');
      expect((await report(TLS, { certificate: 'e' }, 1)).body.status.certificate).toBe('e');
    });

    test('of many holders at once, none writes after a later one', async () => {
      const tokens = Array.from({ length: 24 }, (_, n) => n + 1);
      const answers = await Promise.all(tokens.map((token) => report(DNS, { address: `by-${token}` }, token)));
      expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([]);
      expect(answers.at(-1)?.status).toBe(200);
      expect((await world.viewer.get(path)).body.status.address).toBe('by-24');
    });

    test.for(['0', '-1', '1.5', 'x', '9223372036854775808', '1&fencingToken=2'])('%s is no token', async (token) =>
      expectStatus(await report(DNS, {}, token), 400, 'BadRequest', 'fencingToken'),
    );

    test('a token of nobody is refused', async () => {
      expectStatus(await report('kubectl', {}, 1), 400, 'BadRequest', `it declares ${DNS}, ${TLS}`);
      const widget = `${world.widget('x')}/status?fencingToken=1`;
      expectStatus(await world.controller.patch(widget, { status: {} }), 400, 'BadRequest', 'it declares none');
    });
  });

  test('conditions that are none are refused', async () => {
    for (const conditions of ['x', [1], [{ status: 'True' }], [resolvable, resolvable]]) {
      const answer = await report(DNS, { conditions });
      expectStatus(answer, 422, 'Invalid');
      expect(fieldsOf(answer)[0]).toMatch(/^status\.conditions/);
    }
  });
}

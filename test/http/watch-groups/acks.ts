import { describe, expect, test } from 'vitest';

import { expectStatus, uniqueName } from '#test/http/resource-api/world.ts';
import type { OpenDeployment, OpenTarget } from '#test/http/target.ts';
import { clientOf, clientWith } from '#test/http/client.ts';
import { ACKS, isOf, statusOf, useGroups } from '#test/http/watch-groups/world.ts';

const MALFORMED = 'is no ack token of this listener';

export function acks(open: OpenDeployment): void {
  const users: OpenTarget = async () => (await open()).targets.public;
  const world = useGroups(users);

  async function tokens(events: number): Promise<string[]> {
    const client = await world.join(uniqueName('acks'), { start: 'now' });
    const uid = await world.write(uniqueName('w'), events);
    await client.waitFor(isOf(uid, events - 1));
    return client.events.filter(isOf(uid)).map(({ id }) => id ?? '');
  }

  describe('an ack', () => {
    test('confirms everything of its lane up to its event; those before and the same one again are duplicates', async () => {
      const [first = '', second = '', third = ''] = await tokens(3);
      expect(await world.ack(second)).toBe('Acked');
      expect(await world.ack(first, second, third, third)).toBe('Duplicate Duplicate Acked Acked');
    });

    test('comes with nacks: acks are first, and each has its answer in its place', async () => {
      const [first = '', second = ''] = await tokens(2);
      const answer = await world.member.post(ACKS, { nacks: [{ token: second, delayMs: 0 }], acks: [first] });
      expect([answer.status, answer.body]).toEqual([200, { results: [{ status: 'Acked' }, { status: 'Acked' }] }]);
      expect(await world.ack(second, first)).toBe('Fenced Duplicate');
    });

    test('of nothing is answered with nothing', async () => {
      expect((await world.member.post(ACKS, { acks: [], nacks: [] })).body).toEqual({ results: [] });
    });
  });

  describe('tokens', () => {
    test('cut at any byte, with any bit turned, or made up are refused, and named', async () => {
      const [token = ''] = await tokens(1);
      const hostile = [
        '',
        'x',
        '../..',

        'é',
        'A'.repeat(160),
        'A'.repeat(161),
        'A'.repeat(900_000),
        `${token}A`,
      ];
      for (let length = 0; length < token.length; length += 1) hostile.push(token.slice(0, length));
      for (const [index, character] of [...token].entries()) {
        hostile.push(token.slice(0, index) + (character === 'A' ? 'B' : 'A') + token.slice(index + 1));
      }
      for (const bad of hostile) {
        const answer = await world.member.post(ACKS, { acks: [token, bad] });
        expectStatus(answer, 400, 'BadRequest', `acks[1] ${MALFORMED}`);
        const nack = await world.member.post(ACKS, { nacks: [{ token: bad }] });
        expectStatus(nack, 400, 'BadRequest', /nacks\[0\]\.token is no ack token/);
      }
      expect(await world.ack(token)).toBe('Acked');
    });

    test('of the other audience, and cursors, are refused', async () => {
      const [token = ''] = await tokens(1);
      const controllers = await clientOf((await open()).targets.private, world.owner);
      expectStatus(await controllers.post(ACKS, { acks: [token] }), 400, 'BadRequest', MALFORMED);
      const { cursor } = (await world.viewer.get(world.widgets)).body.metadata;
      expectStatus(await world.member.post(ACKS, { acks: [cursor] }), 400, 'BadRequest', MALFORMED);
    });

    test('of somebody else are unknown: 404 when all are, and beside others an answer in their place', async () => {
      const [mine = ''] = await tokens(1);
      const grant = { ...world.owner, subject: uniqueName('thief') };
      const thief = await clientOf(world.target, grant);
      expectStatus(await thief.post(ACKS, { acks: [mine] }), 404, 'NotFound', 'no group of yours');
      expectStatus(await thief.post(ACKS, { nacks: [{ token: mine }] }), 404, 'NotFound', 'no group of yours');
      const client = await world.join(uniqueName('acks'), { start: 'now' }, grant);
      const uid = await world.write(uniqueName('w'), 1);
      const { id } = await client.waitFor(isOf(uid));
      expect(statusOf(await thief.post(ACKS, { acks: [mine, id] }))).toBe('Unknown Acked');
      expect(await world.ack(mine)).toBe('Acked');
    });

    test('1,000 are taken at once, and one more is not', async () => {
      const [token = ''] = await tokens(1);
      const { status, body } = await world.member.post(ACKS, { acks: Array(1000).fill(token) });
      expect([status, body.results.length]).toEqual([200, 1000]);
      for (const count of [1001, 10_000]) {
        const words = new RegExp(`^${count} tokens were sent, and at most 1000 are taken at once`);
        expectStatus(await world.member.post(ACKS, { acks: Array(count).fill('x') }), 400, 'BadRequest', words);
      }
      const nacks = Array(500).fill({ token });
      expectStatus(await world.member.post(ACKS, { acks: Array(501).fill(token), nacks }), 400, 'BadRequest', '1001');
    });
  });

  describe('a body', () => {
    test.each([
      [{}, 'neither "acks" nor "nacks"'],
      [{ ack: [] }, 'unknown field "ack"'],
      [{ acks: [], more: 1 }, 'unknown field "more"'],
      [{ acks: 'x' }, 'acks must be an array'],
      [{ acks: null }, 'acks must be an array'],
      [{ acks: {} }, 'acks must be an array'],
      [{ acks: [1] }, String.raw`acks\[0\] must be a token`],
      [{ acks: [null] }, String.raw`acks\[0\] must be a token`],
      [{ nacks: ['x'] }, String.raw`nacks\[0\] must be an object`],
      [{ nacks: [null] }, String.raw`nacks\[0\] must be an object`],
      [{ nacks: [{}] }, String.raw`nacks\[0\]\.token must be a token`],
      [{ nacks: [{ token: 'x', delay: 1 }] }, String.raw`nacks\[0\] has an unknown field "delay"`],
      [{ nacks: [{ token: 'x', delayMs: -1 }] }, String.raw`nacks\[0\]\.delayMs must be an integer from 0 to 3600000`],
      [{ nacks: [{ token: 'x', delayMs: 3_600_001 }] }, 'delayMs must be an integer'],
      [{ nacks: [{ token: 'x', delayMs: 0.5 }] }, 'delayMs must be an integer'],
      [{ nacks: [{ token: 'x', delayMs: '1' }] }, 'delayMs must be an integer'],
      [{ nacks: [{ token: 'x', delayMs: null }] }, 'delayMs must be an integer'],
      ['[]', 'must be a JSON object'],
      ['{"acks":[],"acks":[]}', ''],
      ['{"__proto__":[]}', ''],
      ['nonsense', ''],
      ['', 'the body is empty'],
    ])('like %j is refused, with the field and what is wrong', async (body, words) => {
      expectStatus(await world.member.post(ACKS, body), 400, 'BadRequest', new RegExp(words));
    });

    test('larger than 1 MiB is 413, of another type is 415', async () => {
      const large = JSON.stringify({ acks: ['A'.repeat(1024 * 1024)] });
      expectStatus(await world.member.post(ACKS, large), 413, 'RequestEntityTooLarge');
      const answer = await world.member.send('POST', ACKS, '{"acks":[]}', { 'Content-Type': 'text/plain' });
      expectStatus(answer, 415, 'UnsupportedMediaType');
    });
  });

  describe('a caller', () => {
    test('without a token is 401, without a role 403, with another method 405', async () => {
      const nobody = clientWith(world.target.baseUrl, undefined);
      expectStatus(await nobody.post(ACKS, { acks: [] }), 401, 'Unauthorized');
      const idle = await clientOf(world.target, { ...world.owner, roles: [] });
      expectStatus(await idle.post(ACKS, { acks: [] }), 403, 'Forbidden', 'no role');
      const answer = await world.member.get(ACKS);
      expectStatus(answer, 405, 'MethodNotAllowed');
      expect(answer.headers.get('Allow')).toBe('POST');
    });
  });
}

import { describe, expect, test, vi } from 'vitest';

import { type Answer, type Client, clientOf, clientWith } from '#test/http/client.ts';
import { createWidget, expectStatus, TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import { expectFailure } from '#test/http/watch/world.ts';
import type { Grant, OpenDeployment, OpenTarget } from '#test/http/target.ts';
import { isOf, useGroups } from '#test/http/watch-groups/world.ts';
import type { SseClient } from '#test/support/sse-client.ts';

const GROUPS = '/watch/v1/groups';
const REASON = { reason: 'the consumer was fixed' };
const ACTS = ['DELETE ', 'POST /seek', 'POST /reset', 'POST /deadletters/1/retry', 'POST /deadletters/1/skip'];

export function admin(open: OpenDeployment): void {
  const users: OpenTarget = async () => (await open()).targets.public;
  const world = useGroups(users);

  /** Of the tenant of this suite, with the name of a group's owner. */
  function caller(role: 'viewer' | 'admin', changes: Partial<Grant> = {}): Promise<Client> {
    return clientOf(world.target, { ...world.owner, roles: [role], ...changes });
  }

  /** An admin of the same tenant who owns nothing. */
  function otherAdmin(): Promise<Client> {
    return caller('admin', { subject: uniqueName('admin') });
  }

  function ofOwner(name: string, more: string = ''): string {
    return `${GROUPS}/${name}${more}?owner=${world.owner.subject}`;
  }

  async function newGroup(query: Readonly<Record<string, string>> = {}): Promise<{ name: string; client: SseClient }> {
    const name = uniqueName('admin');
    return { name, client: await world.join(name, { start: 'now', ...query }) };
  }

  /** A group whose only event was parked, and its dead letter. */
  async function withDeadLetter(): Promise<{ name: string; client: SseClient; uid: string; id: string }> {
    const { name, client } = await newGroup({ maxAttempts: '1' });
    const uid = await world.write(uniqueName('w'), 1);
    await world.nack((await client.waitFor(isOf(uid))).id);
    const [letter] = await vi.waitFor(async () => {
      const { items } = (await world.member.get(`${GROUPS}/${name}/deadletters`)).body;
      expect(items).toHaveLength(1);
      return items;
    }, 10_000);
    return { name, client, uid, id: letter.id };
  }

  describe('a group', () => {
    test('is seen by its owner: members, lanes, how far behind it is', async () => {
      const { name, client } = await newGroup();
      const uid = await world.write(uniqueName('w'), 2);
      const { data } = await client.waitFor(isOf(uid, 1));
      const { body } = await vi.waitFor(async () => {
        const answer = await world.member.get(`${GROUPS}/${name}`);
        expect(answer.body.oldestUnacked).toBeDefined();
        return answer;
      }, 10_000);
      const { group } = client.events[0]?.data ?? {};
      expect(body).toMatchObject({
        name,
        owner: world.owner.subject,
        tenants: ['shared', world.tenant].toSorted(),
        createdAt: expect.any(String),
        streamLag: expect.any(Number),
        deadLetters: 0,
        members: [{ member: group.member, joinedAt: expect.any(String), lanes: 32 }],
      });
      expect(body.lanes).toHaveLength(32);
      const lane = body.lanes.find((each: { lane: string }) => each.lane === data.lane);
      expect(lane).toEqual({
        lane: data.lane,
        tenant: world.tenant,
        member: group.member,
        confirmedSeq: expect.any(String),
        streamLag: expect.any(Number),
        unackedSince: expect.any(String),
      });
      // Nothing else is written to this tenant now: the last event is the head.
      expect(Number(lane.confirmedSeq) + lane.streamLag).toBe(Number(data.seq));
      expect(lane.streamLag).toBeGreaterThanOrEqual(2);
      expect(await world.ack(client.events.find(isOf(uid, 0))?.id)).toBe('Acked');
      const { lanes } = (await world.member.get(`${GROUPS}/${name}`)).body;
      const acked = lanes.find((each: { lane: string }) => each.lane === data.lane);
      expect([acked.confirmedSeq, acked.streamLag]).toEqual([client.events.find(isOf(uid, 0))?.data.seq, 1]);
    });

    test('is not behind once all is acked, also where the last ack came later than others moved on', async () => {
      const { name, client } = await newGroup({ tenants: world.tenant });
      const path = `${GROUPS}/${name}?tenants=${world.tenant}`;
      const lags = async (): Promise<number[]> =>
        (await world.member.get(path)).body.lanes.map(({ streamLag }: { streamLag: number }) => streamLag);
      const late = await client.waitFor(isOf(await world.write(uniqueName('w'), 1)));
      for (let other = late; other.data.lane === late.data.lane;) {
        other = await client.waitFor(isOf(await world.write(uniqueName('w'), 1)));
        if (other.data.lane !== late.data.lane) await world.ack(other.id);
      }
      await vi.waitFor(async () => expect((await lags()).filter((lag) => lag === 0)).toHaveLength(15), {
        timeout: 10_000,
      });
      await world.ack(client.events.findLast(({ data }) => data.lane === late.data.lane)?.id);
      await vi.waitFor(async () => expect(Math.max(...(await lags()))).toBe(0), { timeout: 10_000 });
    });

    test('shows its lanes in pages', async () => {
      const { name } = await newGroup();
      const all = (await world.member.get(`${GROUPS}/${name}`)).body.lanes;
      const lanes: unknown[] = [];
      for (let after: string | undefined = '', pages = 0; after !== undefined; pages += 1) {
        const { body }: Answer = await world.member.get(`${GROUPS}/${name}?limit=20${after && `&after=${after}`}`);
        lanes.push(...body.lanes);
        after = body.next;
        expect(pages).toBeLessThan(2);
      }
      expect(lanes).toEqual(all);
    });

    test('is in the list of its owner, which comes in pages', async () => {
      const subject = uniqueName('lister');
      const grant = { ...world.owner, subject };
      const names = [uniqueName('one'), uniqueName('two'), uniqueName('three')];
      for (const name of names) await world.join(name, {}, grant);
      const lister = await caller('viewer', { subject });
      const first = (await lister.get(`${GROUPS}?limit=2`)).body;
      const rest = (await lister.get(`${GROUPS}?limit=2&after=${first.next}`)).body;
      expect([...first.items, ...rest.items].map(({ name }) => name)).toEqual(names);
      expect(first.items[0]).toMatchObject({
        owner: subject,
        members: 1,
        streamLag: expect.any(Number),
        deadLetters: 0,
      });
      expect(rest.next).toBeUndefined();
      const admins = (await (await otherAdmin()).get(`${GROUPS}?owner=*&limit=100`)).body.items;
      expect(names.filter((name) => admins.some((group: { name: string }) => group.name === name))).toEqual(names);
    });
  });

  describe('what a caller may not see', () => {
    test('is not there: for another owner, for an admin of another tenant, for the other audience', async () => {
      const { name } = await newGroup();
      const tenant = uniqueName('t');
      expect((await world.admin.post(TENANTS, { metadata: { name: tenant } })).status).toBe(201);
      const strangers = [
        await caller('viewer', { subject: uniqueName('stranger') }),
        await caller('admin', { tenants: [tenant] }),
        await clientOf((await open()).targets.private, { ...world.owner, roles: ['admin'] }),
      ];
      for (const stranger of strangers) {
        for (const path of [ofOwner(name), ofOwner(name, '/deadletters')]) {
          expectStatus(await stranger.get(path), 404, 'NotFound', `there is no group "${name}" over the tenants`);
        }
        for (const act of ACTS) {
          const [method = '', path = ''] = act.split(' ');
          const body = { ...REASON, ...(path === '/seek' && { to: 'now' }) };
          expectStatus(await stranger.send(method, ofOwner(name, path), body), 404, 'NotFound', 'there is no group');
        }
        expect((await stranger.get(`${GROUPS}?owner=${world.owner.subject}`)).body).toEqual({ items: [] });
      }
      const named = await strangers[0]?.get(`${GROUPS}/${name}?tenants=${tenant}`);
      const nowhere = await strangers[0]?.get(`${GROUPS}/${name}?tenants=nowhere`);
      expect(named?.text.replaceAll(tenant, 'X')).toBe(nowhere?.text.replaceAll('nowhere', 'X'));
      expect((await world.member.get(`${GROUPS}/${name}`)).body.members).toHaveLength(1);
    });

    test('is not in the list of all owners', async () => {
      const { name } = await newGroup();
      const lists = [
        await (await caller('viewer', { subject: uniqueName('stranger') })).get(`${GROUPS}?owner=*&limit=100`),
        await (await caller('admin', { tenants: [] })).get(`${GROUPS}?owner=*&limit=100`),
      ];
      for (const { body } of lists) expect(JSON.stringify(body)).not.toContain(name);
    });

    test('is the same as what is not there', async () => {
      const { name } = await newGroup();
      const stranger = await caller('viewer', { subject: uniqueName('stranger') });
      const missing = uniqueName('missing');
      const [there, nowhere] = [await stranger.get(ofOwner(name)), await stranger.get(ofOwner(missing))];
      expect(there.text.replaceAll(name, 'X')).toBe(nowhere.text.replaceAll(missing, 'X'));
    });
  });

  describe('acting', () => {
    test('takes an admin, also for the owner', async () => {
      const { name } = await newGroup();
      for (const act of ACTS) {
        const [method = '', path = ''] = act.split(' ');
        const body = { ...REASON, ...(path === '/seek' && { to: 'now' }) };
        const answer = await world.member.send(method, `${GROUPS}/${name}${path}`, body);
        expectStatus(answer, 403, 'Forbidden', 'admins of its tenants do');
      }
    });

    test.each(ACTS)('takes a reason and nothing else: %s', async (act) => {
      const { name } = await newGroup();
      const owner = await caller('admin');
      const [method = '', path = ''] = act.split(' ');
      const target = path === '/seek' ? { to: 'now' } : {};
      const send = (body: unknown): Promise<Answer> => owner.send(method, `${GROUPS}/${name}${path}`, body);
      for (const reason of [undefined, null, 1, '', '  ', 'x'.repeat(501), 'two\nlines', '\u001b[31m']) {
        expectStatus(await send({ ...target, reason }), 400, 'BadRequest', 'the body needs a "reason"');
      }
      expectStatus(await send({ ...target, ...REASON, why: 'x' }), 400, 'BadRequest', 'unknown field "why"');
      expectStatus(await send(''), 400, 'BadRequest', 'the body is empty');
      expectStatus(await send('[]'), 400, 'BadRequest');
      expectStatus(await send('{"reason":"\\u0000"}'), 400, 'BadRequest');
      expect((await world.member.get(`${GROUPS}/${name}`)).status).toBe(200);
    });
  });

  describe('seek', () => {
    test('to earliest delivers all again, to now nothing', async () => {
      const { name, client } = await newGroup();
      const uid = await world.write(uniqueName('w'), 1);
      const first = await client.waitFor(isOf(uid));
      expect(await world.ack(first.id)).toBe('Acked');
      const done = await (await otherAdmin()).post(ofOwner(name, '/seek'), { to: 'earliest', ...REASON });
      expect([done.status, done.body.name], done.text).toEqual([200, name]);
      const again = await client.waitFor((event) => isOf(uid)(event) && event.data.fence !== first.data.fence);
      expect(again.data.attempt).toBe(1);
      expect((await (await caller('admin')).post(`${GROUPS}/${name}/seek`, { to: 'now', ...REASON })).status).toBe(200);
      await vi.waitFor(
        async () => expect((await world.member.get(`${GROUPS}/${name}`)).body.streamLag).toBe(0),
        10_000,
      );
      expect(await world.ack(again.id)).toBe('Duplicate');
    });

    test('to a cursor of a list of the same tenants goes on behind it', async () => {
      const { name, client } = await newGroup();
      const query = `tenants=${world.tenant}`;
      const alone = await world.join(name, { tenants: world.tenant, start: 'now' });
      const before = await createWidget(world);
      const watch = (await world.viewer.get(world.widgets)).body.metadata.cursor;
      const after = await world.write(uniqueName('w'), 1);
      await alone.waitFor(isOf(after));
      const owner = await caller('admin');
      const answer = await owner.post(`${GROUPS}/${name}/seek?${query}`, { to: watch, ...REASON });
      expect(answer.status, answer.text).toBe(200);
      await vi.waitFor(() => expect(alone.events.filter(isOf(after))).toHaveLength(2), 10_000);
      expect(alone.events.filter(isOf(before.metadata.uid))).toHaveLength(1);
      // Over other tenants it is no cursor.
      expectStatus(await owner.post(`${GROUPS}/${name}/seek`, { to: watch, ...REASON }), 400, 'BadRequest');
      expect(client.events.filter(isOf(after)).length).toBeLessThanOrEqual(1);
    });

    test.each([undefined, null, '', 'latest', 1, 'x'.repeat(5_000), ['now'], { to: 'now' }])(
      'to %j is refused',
      async (to) => {
        const { name } = await newGroup();
        const answer = await (await caller('admin')).post(`${GROUPS}/${name}/seek`, { to, ...REASON });
        expectStatus(answer, 400, 'BadRequest');
      },
    );
  });

  describe('dead letters', () => {
    test('are seen with their event', async () => {
      const { name, uid, id } = await withDeadLetter();
      const { body } = await world.member.get(`${GROUPS}/${name}/deadletters`);
      expect(body).toEqual({
        items: [
          {
            id,
            tenant: world.tenant,
            lane: expect.stringMatching(/^\d+\.\d+$/),
            seq: expect.stringMatching(/^\d+$/),
            type: 'ADDED',
            attempts: expect.any(Number),
            reason: expect.any(String),
            parkedAt: expect.any(String),
            event: expect.objectContaining({ specversion: '1.0', uid, data: expect.any(Object) }),
          },
        ],
      });
      expect((await world.member.get(`${GROUPS}/${name}`)).body.deadLetters).toBe(1);
      expect((await world.member.get(`${GROUPS}/${name}/deadletters?after=${id}`)).body).toEqual({ items: [] });
    });

    test('are delivered again when an admin says so, and forgotten by their ack', async () => {
      const { name, client, uid, id } = await withDeadLetter();
      const path = ofOwner(name, `/deadletters/${id}/retry`);
      const answer = await (await otherAdmin()).post(path, REASON);
      expect([answer.status, answer.body]).toEqual([200, { id }]);
      const again = await client.waitFor((event) => isOf(uid)(event) && event.data.deadletter === id);
      expect(await world.ack(again.id)).toBe('Acked');
      expect((await world.member.get(`${GROUPS}/${name}/deadletters`)).body).toEqual({ items: [] });
      expectStatus(await (await otherAdmin()).post(path, REASON), 404, 'NotFound', 'no dead letter of this id');
    });

    test('are given up when an admin says so', async () => {
      const { name, id } = await withDeadLetter();
      const owner = await caller('admin');
      expect((await owner.post(`${GROUPS}/${name}/deadletters/${id}/skip`, REASON)).body).toEqual({ id });
      for (const other of [id, '0', '999999999999999999', '9'.repeat(40), '-1', 'x', '1e3', '%00']) {
        const answer = await owner.post(`${GROUPS}/${name}/deadletters/${other}/skip`, REASON);
        expectStatus(answer, 404, 'NotFound');
      }
    });

    test('are gone after a reset, and all comes again', async () => {
      const { name, client, uid } = await withDeadLetter();
      expect((await (await caller('admin')).post(`${GROUPS}/${name}/reset`, REASON)).body.deadLetters).toBe(0);
      let event = await client.waitFor(({ id }) => id !== undefined);
      // What lies before it on its lane comes alone: it is the last attempt.
      for (; event.data.uid !== uid; event = await client.waitFor(({ id }) => id !== undefined)) {
        expect(await world.ack(event.id)).toBe('Acked');
      }
      expect(event.data.attempt).toBe(1);
    });
  });

  describe('deletion', () => {
    test('ends the members; a group of that name begins anew', async () => {
      const { name, client } = await newGroup();
      const answer = await (await otherAdmin()).send('DELETE', ofOwner(name), REASON);
      expect([answer.status, answer.body.name], answer.text).toEqual([200, name]);
      const error = await client.waitFor(({ event }) => event === 'ERROR');
      expectFailure(error.data, 404, 'NotFound', `deleted by`);
      expect(error.data.message).toContain(REASON.reason);
      expect(await client.ended).toBeUndefined();
      expectStatus(await world.member.get(`${GROUPS}/${name}`), 404, 'NotFound');
      const again = await world.join(name);
      expect(again.events[0]?.data.group).toMatchObject({ name, isNew: true });
      expect(again.events[0]?.data.group.droppedAt).toBeUndefined();
    });
  });

  describe('requests', () => {
    test.each([
      ['?tenant=x', '"tenant" is not known'],
      ['?limit=0', '"limit" is "0"; allowed is an integer from 1 to'],
      ['?limit=101', 'allowed is an integer from 1 to 100'],
      ['?limit=x', 'allowed is an integer'],
      ['?after=x', '"after" is "x"; send "next" of the page before'],
      [`?after=${'9'.repeat(30)}`, 'send "next" of the page before'],
      ['?owner=', '"owner" is empty'],
      ['?owner=a&owner=b', '"owner" is given 2 times'],
      ['?owner=%00', '"owner" is no subject of a token'],
      [`?owner=${'x'.repeat(254)}`, '"owner" is no subject of a token'],
      ['?tenants=No!', '"tenants" has "No!"'],
      ['/No_name', 'the group\'s name is "No_name"'],
      [`/${'x'.repeat(64)}`, 'must have 1 to 63'],
      ['/x?limit=1601', 'an integer from 1 to 1600'],
      ['/x?after=1.16', 'send "next" of the page before'],
      ['/x/deadletters?after=-1', 'send "next" of the page before'],
    ])('%s is refused', async (path, words) => {
      expectStatus(await world.member.get(GROUPS + path), 400, 'BadRequest', words);
    });

    test('take a token and a role, and their own methods', async () => {
      expectStatus(await clientWith(world.target.baseUrl, undefined).get(GROUPS), 401, 'Unauthorized');
      const idle = await clientOf(world.target, { ...world.owner, roles: [] });
      for (const path of [GROUPS, `${GROUPS}/x`]) expectStatus(await idle.get(path), 403, 'Forbidden', 'no role');
      const seen = await Promise.all(
        ['', '/x', '/x/seek', '/x/reset', '/x/deadletters', '/x/deadletters/1/retry'].map(async (path) => {
          const answer = await world.member.send('PUT', GROUPS + path, {});
          expectStatus(answer, 405, 'MethodNotAllowed');
          return answer.headers.get('Allow');
        }),
      );
      expect(seen).toEqual(['GET, HEAD', 'GET, HEAD, DELETE', 'POST', 'POST', 'GET, HEAD', 'POST']);
    });
  });
}

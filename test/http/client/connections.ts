import { expect, test } from 'vitest';
import { ConnectionError, ProtocolError, StatusError, Unauthorized, watch } from 'plumbline/client';
import { useWays } from '#test/http/client/cutting.ts';
import { expectOnce, isOf, QUICKLY, storyOf, type Taken, useTaking } from '#test/http/client/world.ts';
import { useMembers } from '#test/http/client/members.ts';
import { createWidget, uniqueName, useWorld } from '#test/http/resource-api/world.ts';
import { viewerOf } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import type { HttpFrontOptions } from '#test/support/http-front.ts';

const CUTS = 100;

export function connections(open: OpenTarget): void {
  const world = useWorld(open);
  const taking = useTaking(world);
  const join = useMembers(world);
  const { way, front } = useWays(world);

  test(`${CUTS} cuts lose nothing, repeat nothing and keep what was selected`, async () => {
    const { url, proxy } = await way();
    const taken = await taking({ url, tenants: [world.tenant], labelSelector: 'team=shop', from: 'earliest' });
    const names: string[] = [];
    for (let cut = 1; cut <= CUTS; cut += 1) {
      const name = uniqueName('w');
      names.push(`ADDED ${name}`);
      await createWidget(world, { labels: { team: 'other' } });
      const object = await createWidget(world, { name, labels: { team: 'shop' } });
      if (cut % 2 === 0) await taken.until(isOf(object));
      await expect.poll(() => proxy.connections, { timeout: 10_000, interval: 5 }).toBe(1);
      proxy.cut();
      await taken.untilRetries(cut);
    }
    const last = await createWidget(world, { labels: { team: 'shop' } });
    await taken.until(isOf(last));
    expect(storyOf(taken)).toEqual([...names, `ADDED ${last.metadata.name}`]);
    expectOnce(taken);
    expect(taken.retries.every((why) => why instanceof ConnectionError)).toBe(true);
  });

  test('a connection that a router has forgotten is given up, and nothing is lost', async () => {
    const { url, proxy } = await way();
    const taken = await taking({ url, tenants: [world.tenant], from: 'earliest', heartbeatMs: 200 });
    await taken.until(isOf(await createWidget(world)));
    const before = taken.retries.length;
    proxy.abandon();
    const missed = await createWidget(world);
    await taken.until(isOf(missed));
    expect(taken.retries.length).toBeGreaterThan(before);
    expect(taken.retries.at(before)?.message).toBe('nothing came for 600 ms');
    expectOnce(taken);
  });

  test('a server that takes connections and never answers is given up', async () => {
    const { url, proxy } = await way();
    proxy.stall();
    const taken = await taking({ url, tenants: [world.tenant], from: 'earliest', heartbeatMs: 100 });
    await taken.untilRetries(2);
    await proxy.resume();
    await taken.until(isOf(await createWidget(world)));
  });

  test('a server that is away is asked again until it is back', async () => {
    const { url, proxy } = await way();
    await proxy.refuse();
    const taken = await taking({ url, tenants: [world.tenant], from: 'earliest' });
    await taken.untilRetries(2);
    expect(taken.retries[0]).toBeInstanceOf(ConnectionError);
    await proxy.resume();
    await taken.until(isOf(await createWidget(world)));
  });

  test('a consumer that takes its time is not taken for a dead connection', async () => {
    const event = '{"id":"1","data":{"metadata":{"name":"slowly"}}}';
    const { url } = await front({
      answer(_, response) {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(`${ready({ protocol: 1, mode: 'resume' })}event: ADDED\ndata: ${event}\n\n`);
        return true;
      },
    });
    const options = { url, tenants: [world.tenant], from: 'earliest', heartbeatMs: 50, retry: QUICKLY };
    const retries: Error[] = [];
    for await (const { object } of watch({ ...options, onRetry: (why) => void retries.push(why) })) {
      expect(object.metadata.name).toBe('slowly');
      // As long as it takes to give up a connection twice.
      const other = await taking(options);
      await other.untilRetries(2);
      break;
    }
    expect(retries).toEqual([]);
  });

  test('an initial state that is cut begins anew, and says so', async () => {
    await Promise.all(Array.from({ length: 20 }, () => createWidget(world)));
    await world.viewer.get(world.widgets);
    let isFirst = true;
    const { url } = await front({
      answer(_, response) {
        if (!isFirst) return false;
        isFirst = false;
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(': ok\n\nevent: READY\ndata: {"protocol":1,"mode":"initial","tenants":[],"cursor":"x"}\n\n');
        response.write(
          `event: ADDED\ndata: {"id":"1","data":{"metadata":{"name":"half"}}}\n\nevent: ADDED\ndata: {"id":`,
        );
        setImmediate(() => response.destroy());
        return true;
      },
    });
    const taken = await taking({ url, tenants: [world.tenant], initial: true });
    await taken.until((item) => item.type === 'BOOKMARK' && item.reason === 'InitialEventsEnd');
    const begins = taken.items.flatMap((item, index) =>
      item.type === 'BOOKMARK' && item.reason === 'InitialEventsBegin' ? [index] : [],
    );
    expect(begins).toEqual([0, 2]);
  });

  test('waits as long as the server asks, by Retry-After, by retry and in a Status', async () => {
    const answers: Parameters<NonNullable<HttpFrontOptions['answer']>>[1][] = [];
    const delays: number[] = [];
    const { url } = await front({
      answer(_, response) {
        answers.push(response);
        if (answers.length === 1) {
          response.writeHead(503, { 'Retry-After': '1' }).end('busy');
          return true;
        }
        if (answers.length === 2) {
          response.writeHead(200, { 'Content-Type': 'text/event-stream' });
          response.end(
            'retry: 700\n\nevent: ERROR\ndata: {"kind":"Status","apiVersion":"v1","status":"Failure","code":503,' +
              '"reason":"ServiceUnavailable","message":"stopping","details":{"retryAfterSeconds":0.9}}\n\n',
          );
          return true;
        }
        if (answers.length === 3) {
          response.destroy();
          return true;
        }
        return false;
      },
    });
    const taken = await taking({
      url,
      tenants: [world.tenant],
      from: 'earliest',
      retry: { ...QUICKLY, maxMs: 1_000 },
      onRetry: (_, delayMs) => void delays.push(delayMs),
    });
    await taken.until(isOf(await createWidget(world)));
    expect(delays.map((delayMs) => Math.floor(delayMs / 100) * 100)).toEqual([1000, 900, 700]);
    expect(taken.retries[0]).toBeInstanceOf(StatusError);
    expect(taken.retries[0]).toMatchObject({ code: 503, message: expect.stringContaining('busy') });
  });

  test.each([
    ['a page', 'text/html', '<html>', 'it answers with text/html'],
    ['a stranger', 'text/event-stream', 'event: message\ndata: {}\n\n', 'begins with message instead of READY'],
    ['another protocol', 'text/event-stream', ready({ protocol: 2, mode: 'resume' }), 'speaks protocol 2'],
    [
      'a server that ignores the cursor',
      'text/event-stream',
      ready({ protocol: 1, mode: 'live' }),
      'asked for mode resume',
    ],
  ])('stops at %s', async (_, type, body, words) => {
    const { url, requests } = await front({
      answer(_request, response) {
        response.writeHead(200, { 'Content-Type': type });
        response.write(body);
        return true;
      },
    });
    const taken: Taken = await taking({ url, tenants: [world.tenant], from: 'earliest' });
    const error = await taken.ended;
    expect(error).toBeInstanceOf(ProtocolError);
    expect((error as Error).message).toContain(words);
    expect([taken.items, requests.length]).toEqual([[], 1]);
  });

  test('a token that ends with its stream is replaced, and nothing is lost', async () => {
    const asked: (string | undefined)[] = [];
    const grant = viewerOf(world);
    // A minute after its end it is still taken.
    const old = await world.target.token({ ...grant, ttlSeconds: -58 });
    const fresh = await world.target.token(grant);
    const taken = await taking({
      tenants: [world.tenant],
      from: 'earliest',
      token(refused) {
        asked.push(refused);
        return refused === old ? fresh : old;
      },
    });
    await taken.until(isOf(await createWidget(world)));
    await taken.untilRetries(1);
    expect(taken.retries[0]).toBeInstanceOf(Unauthorized);
    await taken.until(isOf(await createWidget(world)));
    expect(asked).toEqual([undefined, old]);
    expectOnce(taken);
  });

  test('the end of a stream by its token does not refuse a newer one that other calls have got meanwhile', async () => {
    const grant = viewerOf(world);
    const old = await world.target.token({ ...grant, ttlSeconds: -56 });
    const fresh = await world.target.token(grant);
    const { url } = await front({
      answer(request, response) {
        if (request.url !== '/watch/v1/acks' || request.headers.authorization !== `Bearer ${old}`) return false;
        response.writeHead(401).end();
        return true;
      },
    });
    const asked: (string | undefined)[] = [];
    const token = (refused: string | undefined): string => {
      asked.push(refused);
      return refused === undefined ? old : fresh;
    };
    const member = await join({ url, token, group: uniqueName('g'), start: 'now' });
    await member.until(() => member.joins.length === 1);
    await createWidget(world);
    await member.until(() => member.handled.length === 1);
    await member.until(() => member.joins.length === 2);
    expect(member.retries[0]).toBeInstanceOf(Unauthorized);
    expect(asked).toContain(old);
    expect(asked).not.toContain(fresh);
  });

  test('a token that is refused at once is asked for anew, once', async () => {
    const good = await world.target.token(viewerOf(world));
    const taken = await taking({
      tenants: [world.tenant],
      from: 'earliest',
      token: (refused) => (refused ? good : 'bad'),
    });
    await taken.until(isOf(await createWidget(world)));
    const stubborn = await taking({ tenants: [world.tenant], token: async () => 'bad' });
    expect(await stubborn.ended).toBeInstanceOf(Unauthorized);
    const fixed = await taking({ tenants: [world.tenant], token: 'bad' });
    expect(await fixed.ended).toBeInstanceOf(Unauthorized);
    expect([...stubborn.retries, ...fixed.retries]).toEqual([]);
  });

  test('a source of tokens that fails is asked again', async () => {
    const good = await world.target.token(viewerOf(world));
    let calls = 0;
    const taken = await taking({
      tenants: [world.tenant],
      from: 'earliest',
      token() {
        calls += 1;
        if (calls < 3) throw new Error('the identity provider is away');
        return good;
      },
    });
    await taken.until(isOf(await createWidget(world)));
    expect(taken.retries.map(({ message }) => message)).toEqual(
      Array.from({ length: 2 }, () => 'there is no token: the identity provider is away'),
    );
  });

  test('a watch that is left closes its connection', async () => {
    const { url, proxy } = await way();
    const taken = await taking({ url, tenants: [world.tenant], from: 'earliest' });
    await taken.until(isOf(await createWidget(world)));
    await taken.stop();
    await expect.poll(() => proxy.connections).toBe(0);
  });
}

function ready(granted: object): string {
  return `: ok\n\nevent: READY\ndata: ${JSON.stringify({ ...granted, tenants: '*', cursor: 'x' })}\nid: x\n\n`;
}

/** `EventSource` as browsers have it, behind a proxy of the page's origin that adds the token: it can send none. */

import type { Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, clientOf } from '#test/http/client.ts';
import { TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import { describeInBrowser, useBrowser } from '#test/support/browser.ts';
import { type HttpFront, startHttpFront } from '#test/support/http-front.ts';
import { type OwnServer, startOwnServer } from '#test/support/own-server.ts';

/** All that a page needs: it follows, and when its place is refused, it lists and follows from there. */
const PAGE = `<!doctype html><title>widgets</title><script>
  const seen = [];
  const names = new Set();
  let source;

  function follow(tenant, query) {
    source = new EventSource('/watch/v1/events?tenants=' + tenant + '&' + query);
    for (const type of ['READY', 'ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']) {
      source.addEventListener(type, (event) => take(tenant, type, JSON.parse(event.data)));
    }
  }

  function take(tenant, type, data) {
    const name = data.data?.metadata.name ?? data.reason ?? data.mode;
    if (type !== 'BOOKMARK') seen.push(type + ' ' + name);
    if (type === 'ADDED') names.add(name);
    if (type === 'DELETED') names.delete(name);
    if (type !== 'ERROR') return;
    source.close();
    if (data.code === 410) void list(tenant);
  }

  async function list(tenant) {
    const answer = await fetch('/apis/example.dev/v1/namespaces/' + tenant + '/widgets');
    const { metadata, items } = await answer.json();
    names.clear();
    for (const item of items) names.add(item.metadata.name);
    seen.push('LISTED ' + items.length);
    follow(tenant, 'from=' + encodeURIComponent(metadata.cursor));
  }
</script>`;

describeInBrowser('EventSource', () => {
  const open = useBrowser();
  let server: OwnServer;
  let front: HttpFront;
  let admin: Client;
  let tenant: string;
  let widgets: string;
  let isAway = false;

  beforeAll(async () => {
    server = await startOwnServer();
    const token = await server.token({ roles: ['viewer'], tenants: '*' });
    admin = await clientOf(server, { roles: ['admin'], tenants: '*' });
    front = await startHttpFront({
      target: () => server.baseUrl,
      headers: { authorization: `Bearer ${token}` },
      answer({ url }, response) {
        if (isAway) response.destroy();
        else if (url === '/') response.writeHead(200, { 'Content-Type': 'text/html' }).end(PAGE);
        return isAway || url === '/';
      },
    });
  });

  afterAll(async () => {
    await front.stop();
    await server.stop();
  });

  beforeEach(async () => {
    tenant = uniqueName('t');
    widgets = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
    await admin.post(TENANTS, { metadata: { name: tenant } });
  });

  afterEach(() => {
    isAway = false;
  });

  async function create(...names: string[]): Promise<void> {
    for (const name of names) expect((await admin.post(widgets, { metadata: { name } })).status).toBe(201);
  }

  async function follow(query: string): Promise<Page> {
    const page = await open(front.url);
    await page.evaluate(`follow(${JSON.stringify(tenant)}, ${JSON.stringify(query)})`);
    return page;
  }

  async function untilSeen(page: Page, line: string): Promise<readonly string[]> {
    await page.waitForFunction(`seen.includes(${JSON.stringify(line)})`, { timeout: 30_000 });
    return (await page.evaluate('seen')) as string[];
  }

  test('resumes behind the last event that it has, by itself, without a gap or a repeat', async () => {
    await create('one');
    const page = await follow('from=earliest');
    await untilSeen(page, 'ADDED one');
    front.cut();
    await create('two');
    await untilSeen(page, 'ADDED two');
    await server.restart();
    await create('three');
    expect(await untilSeen(page, 'ADDED three')).toEqual([
      'READY resume',
      'ADDED one',
      'READY resume',
      'ADDED two',
      'READY resume',
      'ADDED three',
    ]);
  });

  test('that began with the state resumes with what follows it', async () => {
    await create('one');
    const page = await follow('initial=true');
    await untilSeen(page, 'ADDED one');
    await create('two');
    await untilSeen(page, 'ADDED two');
    front.cut();
    await create('three');
    const story = await untilSeen(page, 'ADDED three');
    expect(story).toEqual(['READY initial', 'ADDED one', 'ADDED two', 'READY resume', 'ADDED three']);
  });

  test('is told that its place has expired, and does not send it again', async () => {
    await create('one', 'two');
    const page = await follow('from=earliest');
    await untilSeen(page, 'ADDED two');
    isAway = true;
    front.cut();
    await admin.delete(`${widgets}/one`);
    await create('three');
    await admin.get(widgets);
    await server.removeHistory(tenant, 4);
    isAway = false;
    await untilSeen(page, 'LISTED 2');
    await create('four');
    const story = await untilSeen(page, 'ADDED four');
    expect(story.slice(3)).toEqual(['ERROR Expired', 'LISTED 2', 'READY resume', 'ADDED four']);
    expect(await page.evaluate('[...names].sort()')).toEqual(['four', 'three', 'two']);
  });

  test('is told that the key of its place was retired', async () => {
    await create('one');
    const page = await follow('from=earliest');
    await untilSeen(page, 'ADDED one');
    await server.retireCursorKeys();
    await untilSeen(page, 'LISTED 1');
    await create('two');
    const story = await untilSeen(page, 'ADDED two');
    expect(story.slice(2)).toEqual(['ERROR CursorKeyRetired', 'LISTED 1', 'READY resume', 'ADDED two']);
  });

  test('that does not heed the refusal begins again as it was asked to at first, and not at the refused place', async () => {
    await create('one', 'two');
    const page = await follow('from=earliest');
    await untilSeen(page, 'ADDED two');
    await page.evaluate('source.close = () => undefined; list = () => undefined;');
    await server.retireCursorKeys();
    await page.waitForFunction(`seen.filter((line) => line === 'ADDED two').length === 2`, { timeout: 30_000 });
    const story = (await page.evaluate('seen')) as string[];
    expect(story.slice(3)).toEqual(['ERROR CursorKeyRetired', 'READY resume', 'ADDED one', 'ADDED two']);
  });
});

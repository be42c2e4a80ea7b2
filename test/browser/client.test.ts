/**
 * `plumbline/client` in a page and in a worker of another origin than the server's, as plain ES modules, which a
 * development server of Vite makes of it.
 */

import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createViteServer } from 'vitest/node';
import { type Client, clientOf } from '#test/http/client.ts';
import { wayTo, type Way } from '#test/http/client/cutting.ts';
import { TENANTS } from '#test/http/resource-api/world.ts';
import { describeInBrowser, useBrowser } from '#test/support/browser.ts';
import { type OwnServer, startOwnServer } from '#test/support/own-server.ts';

type ViteServer = Awaited<ReturnType<typeof createViteServer>>;

const CLIENT = '/infra/client/index.ts';
const WIDGETS = '/apis/example.dev/v1/namespaces/acme/widgets';

describeInBrowser('plumbline/client', () => {
  const open = useBrowser();
  let vite: ViteServer;
  let origin: string;
  let server: OwnServer;
  let way: Way;
  let admin: Client;
  let token: string;

  beforeAll(async () => {
    vite = await createViteServer({
      configFile: false,
      root: process.cwd(),
      logLevel: 'error',
      server: { host: '127.0.0.1', port: 0, hmr: false, ws: false, watch: null },
      optimizeDeps: { noDiscovery: true },
      appType: 'mpa',
      plugins: [{ name: 'empty page', configureServer: ({ middlewares }) => void middlewares.use('/page', emptyPage) }],
    });
    await vite.listen();
    const address = vite.httpServer?.address();
    if (typeof address !== 'object' || !address) throw new Error('vite does not listen');
    origin = `http://127.0.0.1:${address.port}`;
    server = await startOwnServer({ CORS_ORIGINS: origin });
    way = await wayTo(server.baseUrl);
    admin = await clientOf(server, { roles: ['admin'], tenants: '*' });
    await admin.post(TENANTS, { metadata: { name: 'acme' } });
    token = await server.token({ roles: ['viewer'], tenants: ['acme'] });
  });

  afterAll(async () => {
    await way.proxy.stop();
    await server.stop();
    await vite.close();
  });

  async function untilSeen(page: Page, line: string): Promise<readonly string[]> {
    await page.waitForFunction(`seen.includes(${JSON.stringify(line)})`, { timeout: 30_000 });
    return (await page.evaluate('seen')) as string[];
  }

  const options = (): string => JSON.stringify({ url: way.url, token, tenants: ['acme'], retry: { minMs: 50 } });

  test('watches from a page, resumes behind a cut, and ends with the errors of the server', async () => {
    const page = await open(`${origin}/page`);
    await page.evaluate(`
      globalThis.seen = [];
      void import(${JSON.stringify(CLIENT)}).then(async ({ watch, CursorKeyRetired }) => {
        try {
          for await (const { type, object } of watch({ ...${options()}, from: 'earliest' })) {
            seen.push(type + ' ' + object.metadata.name);
          }
        } catch (error) {
          seen.push(error.name + ' ' + (error instanceof CursorKeyRetired));
        }
      });`);
    await admin.post(WIDGETS, { metadata: { name: 'one' } });
    await untilSeen(page, 'ADDED one');
    way.proxy.cut();
    await admin.post(WIDGETS, { metadata: { name: 'two' } });
    await untilSeen(page, 'ADDED two');
    await server.retireCursorKeys();
    expect(await untilSeen(page, 'CursorKeyRetired true')).toEqual(['ADDED one', 'ADDED two', 'CursorKeyRetired true']);
  });

  test('keeps an informer in a worker', async () => {
    const page = await open(`${origin}/page`);
    await page.evaluate(`
      globalThis.seen = [];
      const code = \`
        const { informer } = await import(${JSON.stringify(origin + CLIENT)});
        const kind = { group: 'example.dev', version: 'v1', kind: 'Widget', plural: 'widgets' };
        informer({ ...${options()}, kind, onAdd: ({ metadata }) => postMessage('ADDED ' + metadata.name) });
      \`;
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), { type: 'module' });
      worker.onmessage = ({ data }) => seen.push(data);
      worker.onerror = ({ message }) => seen.push('error ' + message);`);
    await admin.post(WIDGETS, { metadata: { name: 'from-worker' } });
    const story = await untilSeen(page, 'ADDED from-worker');
    expect(story.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});

function emptyPage(
  _request: unknown,
  response: { setHeader(name: string, value: string): void; end(body: string): void },
): void {
  response.setHeader('Content-Type', 'text/html');
  response.end('<!doctype html><title>client</title>');
}

/**
 * A real, headless Chromium for tests. On a machine without one these tests are skipped, and the run says so;
 * `PLUMBLINE_TEST_BROWSER=required` makes it fail instead.
 */

import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import { afterAll, afterEach, describe, inject } from 'vitest';
import type { BrowserOfRun } from '#test/support/global-browser.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly browser: BrowserOfRun;
  }
}

/** `describe` for tests that need a browser. */
export function describeInBrowser(name: string, tests: () => void): void {
  describe.skipIf(inject('browser').problem !== undefined)(name, tests);
}

/** Opens pages of one browser; each is closed behind its test. */
export function useBrowser(): (url: string) => Promise<Page> {
  let launching: Promise<Browser> | undefined;
  const pages: Page[] = [];
  afterEach(async () => {
    await Promise.all(pages.splice(0).map((page) => page.close()));
  });
  afterAll(async () => {
    await (await launching)?.close();
  });
  return async (url) => {
    launching ??= puppeteer.launch({
      executablePath: inject('browser').path ?? '',
      // Its sandbox does not run as root, nor in most containers; it loads pages of the tests only.
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
    const page = await (await launching).newPage();
    pages.push(page);
    await page.goto(url);
    return page;
  };
}

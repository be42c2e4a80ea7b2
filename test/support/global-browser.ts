/**
 * vitest's global setup: which browser the run has. `PLUMBLINE_TEST_BROWSER=required` makes a run without one fail; a path
 * in it names the browser.
 */

import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { TestProject } from 'vitest/node';

export interface BrowserOfRun {
  /** Of a Chromium. */
  readonly path?: string;
  /** Why there is none. */
  readonly problem?: string;
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

export async function setup(project: TestProject): Promise<void> {
  const wish = process.env['PLUMBLINE_TEST_BROWSER'] ?? '';
  const isRequired = wish === 'required';
  const path = await firstThatRuns(wish === '' || isRequired ? candidates() : [wish]);
  const problem = wish === '' || isRequired ? `none of ${NAMES.join(', ')} is in PATH` : `${wish} cannot be run`;
  if (path === undefined && wish !== '') throw new Error(`PLUMBLINE_TEST_BROWSER is "${wish}": ${problem}`);
  if (path === undefined) process.stderr.write(`The tests in a browser are left out: ${problem}\n`);
  project.provide('browser', path === undefined ? { problem } : { path });
}

function candidates(): string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
}

async function firstThatRuns(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  return undefined;
}

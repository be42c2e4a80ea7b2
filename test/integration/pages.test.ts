import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { afterAll, expect, test } from 'vitest';
import { openTestKit } from 'plumbline/testkit';
import { files, pageKind } from '#test/examples/pages.ts';

const folder = await mkdtemp('/tmp/pages-');
const kit = await openTestKit({ kinds: (external) => [pageKind(folder, external(files, 'files'))] });
afterAll(() => Promise.all([kit.close(), rm(folder, { recursive: true })]));

const scenario = {
  steps: [
    () => kit.create('Page', 'home', { title: 'Hello' }),
    () => kit.update('Page', 'home', { title: 'Welcome' }),
    () => rm(`${folder}/acme.home.html`), // by hand: it comes back
    () => kit.delete('Page', 'home'),
  ],
  async state() {
    const names = await readdir(folder);
    return Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readFile(`${folder}/${name}`, 'utf8')])),
    );
  },
};

test('a page ends the same wherever the process dies', () => kit.crashEverywhere(scenario));
test('no page is lost, and none is called ready, while files cannot be read or written', () =>
  kit.faultEverywhere(scenario));
test("a stranger's page is left alone", async () => {
  await writeFile(`${folder}/acme.about.html`, 'mine');
  await kit.create('Page', 'about', { title: 'About' });
  await kit.settle();
  const page = await kit.get('Page', 'about');
  expect(page?.status?.['conditions']).toContainEqual(
    expect.objectContaining({ type: 'Ready', reason: 'OwnershipConflict' }),
  );
  await kit.delete('Page', 'about');
  await kit.settle();
  expect(await kit.get('Page', 'about')).toBeUndefined();
  expect(await readFile(`${folder}/acme.about.html`, 'utf8')).toBe('mine');
});

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const LINT = / \/\/ oxlint-disable-line .*$/gm;

test.each(['test/examples/pages.ts', 'test/integration/pages.test.ts'])(
  'README shows %s word by word',
  async (file) => {
    const [readme, code] = await Promise.all([readFile('README.md', 'utf8'), readFile(file, 'utf8')]);
    expect(readme).toContain(`\`\`\`ts\n${code.replaceAll(LINT, '')}\`\`\``);
  },
);

test('a kind with its controller fits in less than 40 lines', async () => {
  const code = await readFile('test/examples/pages.ts', 'utf8');
  expect(code.trimEnd().split('\n').length).toBeLessThan(40);
});

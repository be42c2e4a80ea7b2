/** The units, by systemd's own verifier, where there is one. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const FOLDER = 'infra/node/systemd';
const hasVerifier = spawnSync('systemd-analyze', ['--version']).status === 0;
const scratch = mkdtempSync(join(tmpdir(), 'plumbline-units-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** As if this checkout lay in /opt/plumbline. */
function verify(file: string, change: (text: string) => string = (text) => text): string {
  const copy = join(scratch, file.replace('@.', '@api.'));
  writeFileSync(copy, change(readFileSync(join(FOLDER, file), 'utf8').replaceAll('/opt/plumbline', process.cwd())));
  return spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' }).stderr;
}

test.skipIf(!hasVerifier).each(readdirSync(FOLDER))('%s is valid', (file) => {
  expect(verify(file)).toBe('');
  expect(verify(file, (text) => text.replace('ProtectHome', 'ProtectHaus'))).toContain('ProtectHaus');
});

test('the node that the units name is the one that runs the sources', () => {
  expect(execFileSync('node_modules/.bin/node', ['--version'], { encoding: 'utf8' })).toMatch(/^v2[4-9]\./);
});

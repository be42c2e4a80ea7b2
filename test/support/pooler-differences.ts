/**
 * Set up in every worker of a run with a pooler. Tests that are about sessions, which a transaction pooler does not have, are
 * left out, each with its reason.
 */

import { fileURLToPath } from 'node:url';
import { relative } from 'node:path';
import { beforeEach } from 'vitest';

/** Files, and single tests as `file > name`. */
const DIFFERENCES: ReadonlyMap<string, string> = new Map([
  ['integration/restored-database.test.ts', 'PostgreSQL copies no database in which a pooler keeps sessions'],
]);

const TESTS = fileURLToPath(new URL('..', import.meta.url));

// Programs that tests start are redirected too.
const hook = `--import ${new URL('pooled-imports.ts', import.meta.url).href}`;
process.env['NODE_OPTIONS'] = [process.env['NODE_OPTIONS'], hook].filter(Boolean).join(' ');

beforeEach(({ task, skip }) => {
  const file = relative(TESTS, task.file.filepath);
  const reason = DIFFERENCES.get(file) ?? DIFFERENCES.get(`${file} > ${task.name}`);
  if (reason !== undefined) skip(reason);
});

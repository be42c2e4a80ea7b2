/**
 * Each function runs wherever JavaScript does: bundled for workerd without compatibility flags, nothing of Node is left
 * in it. What needs a platform is an adapter, and what an adapter needs is told here.
 */

import { readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
/** As wrangler resolves packages. */
const CONDITIONS = ['workerd', 'worker', 'browser'];
/** A large function starts slowly; an isolate has 128 MiB for all that it does. Minified, in KiB. */
const MOST_KIB = 420;

const FUNCTIONS = readdirSync(path.join(root, 'functions'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

interface Bundle {
  /** Imports that only a platform can answer, with who has them. */
  readonly builtins: readonly string[];
  readonly kib: number;
}

async function bundle(files: readonly string[]): Promise<Bundle> {
  const builtins: string[] = [];
  const { outputFiles } = await build({
    stdin: {
      contents: files.map((file) => `export * as _${files.indexOf(file)} from './${file}';`).join('\n'),
      resolveDir: root,
    },
    bundle: true,
    format: 'esm',
    minify: true,
    write: false,
    logLevel: 'silent',
    conditions: CONDITIONS,
    plugins: [noteBuiltins(builtins)],
  });
  return { builtins: builtins.toSorted(), kib: Math.ceil((outputFiles[0]?.contents.length ?? 0) / 1_024) };
}

function noteBuiltins(found: string[]): Plugin {
  return {
    name: 'note-builtins',
    setup({ onResolve }) {
      onResolve({ filter: /.*/ }, ({ path: specifier, importer }) => {
        if (!isBuiltin(specifier) && !specifier.startsWith('cloudflare:')) return undefined;
        found.push(`${path.relative(root, importer)} imports ${specifier}`);
        return { path: specifier, external: true };
      });
    },
  };
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${folder}/${file.replaceAll(path.sep, '/')}`);
}

describe('bundled for workerd without compatibility flags', () => {
  it.each(FUNCTIONS)('functions/%s has no import of Node', async (name) => {
    const { builtins, kib } = await bundle(filesOf(`functions/${name}`));
    expect(builtins).toEqual([]);
    expect(kib).toBeGreaterThan(0);
    expect(kib).toBeLessThan(MOST_KIB);
  });

  it('an adapter that needs Node is found', async () => {
    const { builtins } = await bundle(['adapters/postgres/client.ts']);
    expect(builtins).toContain('adapters/postgres/socket.ts imports node:net');
  });
});

/** Functions bundled for workerd without compatibility flags, as a platform without Node loads them. */

import { readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

const root = path.resolve(import.meta.dirname, '../..');
/** As wrangler resolves packages. */
const CONDITIONS = ['workerd', 'worker', 'browser'];

/** All folders of `functions/`, what they share among them. */
export const FUNCTIONS: readonly string[] = readdirSync(path.join(root, 'functions'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

export interface Bundle {
  /** Minified. */
  readonly script: string;
  /** Imports that only a platform can answer, with who has them. */
  readonly builtins: readonly string[];
}

/** All files of a function. @param more lines of the module that exports them */
export async function bundleFunction(name: string, more = ''): Promise<Bundle> {
  return bundle(filesOf(`functions/${name}`), more);
}

/** @param files from the root of the repository */
export async function bundle(files: readonly string[], more = ''): Promise<Bundle> {
  const builtins: string[] = [];
  const { outputFiles } = await build({
    stdin: {
      contents: `${files.map((file) => `export * as _${files.indexOf(file)} from './${file}';`).join('\n')}\n${more}`,
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
  return { builtins: builtins.toSorted(), script: outputFiles[0]?.text ?? '' };
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

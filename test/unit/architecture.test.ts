/**
 * The second lock on the import arrows (lint is the first): infra → functions → functions/_core ← adapters, and infra →
 * adapters; infra/client, which runs in browsers, imports no platform. Reads every import of every file; it also bounds
 * the size of files and knows every package.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';

import { describe, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const runtimePackages = new Set(Object.keys(manifest.dependencies));
const allPackages = new Set([...runtimePackages, ...Object.keys(manifest.devDependencies)]);
const aliases = Object.entries<string>(manifest.imports).map(([alias, target]) => {
  return { prefix: alias.replace('*', ''), folder: target.replace('./', '').replace('*', '') };
});

const MAX_LINES = 250;
/** Files that are longer, and why splitting them would make them worse. */
const LONGER_FILES: ReadonlyMap<string, string> = new Map();

/** It runs in browsers and workers too, and is small. */
const CLIENT_RULE = 'the client imports only itself, the core, loops and its parser';

describe('the checker', () => {
  it.each([
    ['functions/_core/resource.ts', 'node:fs', 'the core imports only the core and valibot'],
    ['functions/_core/resource.ts', 'hono', 'the core imports only the core and valibot'],
    [
      'functions/_core/ports/resources.ts',
      '#adapters/postgres/client.ts',
      'the core imports only the core and valibot',
    ],
    ['functions/_core/ports/resources.ts', '#http/app.ts', 'the core imports only the core and valibot'],
    ['functions/_http/app.ts', '#functions/api/handler.ts', 'shared HTTP code imports only itself and the core'],
    ['functions/_http/app.ts', '#adapters/postgres/client.ts', 'shared HTTP code imports only itself and the core'],
    [
      'functions/api/handler.ts',
      '#functions/watch/hub.ts',
      'a function imports only itself, what functions share, and the core',
    ],
    [
      'functions/api/handler.ts',
      '#adapters/postgres/client.ts',
      'a function imports only itself, what functions share, and the core',
    ],
    [
      'functions/api/handler.ts',
      '#infra/_shared/settings/config.ts',
      'a function imports only itself, what functions share, and the core',
    ],
    ['adapters/postgres/client.ts', '#functions/api/handler.ts', 'an adapter imports only its own folder and the core'],
    ['adapters/postgres/client.ts', '#http/app.ts', 'an adapter imports only its own folder and the core'],
    ['adapters/postgres/client.ts', '#adapters/node/serve.ts', 'an adapter imports only its own folder and the core'],
    [
      'adapters/postgres/client.ts',
      '#infra/_shared/settings/config.ts',
      'an adapter imports only its own folder and the core',
    ],
    ['infra/client/watch.ts', 'node:timers/promises', CLIENT_RULE],
    ['infra/client/watch.ts', 'valibot', CLIENT_RULE],
    ['infra/client/watch.ts', '#infra/_shared/settings/config.ts', CLIENT_RULE],
    ['infra/client/watch.ts', '#functions/watch/frames.ts', CLIENT_RULE],
    ['infra/client/watch.ts', '#adapters/postgres/client.ts', CLIENT_RULE],
    ['infra/local/main.ts', '#test/support/database.ts', 'nothing but a test imports a test'],
    ['infra/local/main.ts', 'fast-check', 'fast-check is not in dependencies'],
    ['infra/local/main.ts', '@scope/unknown/deep.js', '@scope/unknown is not in dependencies'],
    ['infra/local/main.ts', 'fs', 'write node:fs'],
    ['infra/local/main.ts', './config.ts', 'import by #-path'],
    ['functions/watch/handler.ts', '../../adapters/postgres/client.ts', 'import by #-path'],
    ['infra/local/main.ts', '#unknown/x.ts', 'no such #-path'],
    ['functions/api/handler.ts', '#functions/_core/resource.ts', 'write #core/resource.ts'],
  ])('finds that %s must not import %s', (file, specifier, problem) => {
    expect(problemOf(file, specifier)).toBe(problem);
  });

  it.each([
    ['functions/_core/resource.ts', 'valibot'],
    ['functions/_core/ports/resources.ts', '#core/resource.ts'],
    ['functions/_http/app.ts', 'hono/factory'],
    ['functions/api/handler.ts', '#functions/api/target.ts'],
    ['functions/api/handler.ts', '#http/app.ts'],
    ['adapters/postgres/client.ts', 'node:fs/promises'],
    ['adapters/postgres/client.ts', '#adapters/postgres/deep/client.ts'],
    ['adapters/ciphers/secret-box.ts', '@noble/ciphers/aes.js'],
    ['infra/client/group/acks.ts', '#infra/client/caller.ts'],
    ['infra/client/group/acks.ts', '#loop/pause.ts'],
    ['infra/client/objects.ts', '#core/resource.ts'],
    ['infra/client/sse-stream.ts', 'eventsource-parser'],
    ['infra/local/main.ts', '#adapters/node/serve.ts'],
    ['infra/local/main.ts', '#functions/api/handler.ts'],
  ])('lets %s import %s', (file, specifier) => {
    expect(problemOf(file, specifier)).toBeUndefined();
  });

  it('reads every form of import', () => {
    const source = [
      "import 'a';",
      "import b from 'b';",
      "import type { c } from 'c';",
      'import {',
      '  d, // from somewhere',
      "} from 'd';",
      "export * from 'e';",
      "export { f } from 'f';",
      "const g = await import('hono');",
      "type H = import('jose').H;",
      "// import 'comment';",
      "const text = 'import nothing';",
    ].join('\n');
    expect(importsOf(source)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'hono', 'jose']);
  });
});

describe('every file of functions, adapters and infra', () => {
  const files = ['functions', 'adapters', 'infra'].flatMap(typeScriptFiles);

  it('is read by this test', () => {
    expect(files).toContain('functions/_core/resource.ts');
    expect(files).toContain('adapters/ciphers/secret-box.ts');
    expect(importsOf(read('adapters/ciphers/secret-box.ts'))).toContain('@noble/ciphers/aes.js');
  });

  it('imports only what its place allows', () => {
    const problems = files.flatMap((file) =>
      importsOf(read(file)).flatMap((specifier) => {
        const problem = problemOf(file, specifier);
        return problem ? [`${file} imports ${specifier}: ${problem}`] : [];
      }),
    );
    expect(problems).toEqual([]);
  });

  it(`has at most ${MAX_LINES} lines, or a reason`, () => {
    const long = files.filter((file) => read(file).trimEnd().split('\n').length > MAX_LINES);
    expect(long).toEqual([...LONGER_FILES.keys()]);
  });
});

describe('every test', () => {
  it('imports only packages that package.json names', () => {
    const unknown = typeScriptFiles('test').flatMap((file) =>
      importsOf(read(file))
        .map(packageOf)
        .filter((name) => name !== undefined && name !== manifest.name && !allPackages.has(name))
        .map((name) => `${file} imports ${name}`),
    );
    expect(unknown).toEqual([]);
  });
});

/** What is wrong with an import; undefined when the arrow is allowed. */
function problemOf(file: string, specifier: string): string | undefined {
  const [, area = '', folder = ''] =
    /^(functions\/_core|functions\/_http|functions\/_loop|functions|adapters|infra)\/(?:([^/]+)\/)?/.exec(file) ?? [];
  if (specifier.startsWith('.')) return 'import by #-path';
  if (!specifier.startsWith('node:') && isBuiltin(specifier)) return `write node:${specifier}`;
  const target = targetOf(specifier);
  if (specifier.startsWith('#') && target === undefined) return 'no such #-path';
  if (specifier.startsWith('#functions/_core/')) return `write ${specifier.replace('#functions/_core/', '#core/')}`;
  if (specifier.startsWith('#functions/_loop/')) return `write ${specifier.replace('#functions/_loop/', '#loop/')}`;
  if (specifier.startsWith('#functions/_http/')) return `write ${specifier.replace('#functions/_http/', '#http/')}`;
  if (target?.startsWith('test/')) return 'nothing but a test imports a test';
  const within = (...folders: string[]) =>
    target === undefined || folders.some((allowed) => target.startsWith(`${allowed}/`));
  if (area === 'functions/_core' && !(specifier === 'valibot' || (target !== undefined && within(area)))) {
    return 'the core imports only the core and valibot';
  }
  if (area === 'functions/_http' && !within(area, 'functions/_core')) {
    return 'shared HTTP code imports only itself and the core';
  }
  if (area === 'functions/_loop' && !within(area, 'functions/_core'))
    return 'loops import only themselves and the core';
  if (area === 'functions' && !within(`functions/${folder}`, 'functions/_http', 'functions/_loop', 'functions/_core')) {
    return 'a function imports only itself, what functions share, and the core';
  }
  if (area === 'adapters' && !within(`adapters/${folder}`, 'functions/_core')) {
    return 'an adapter imports only its own folder and the core';
  }
  if (area === 'infra' && folder === 'client') {
    const isParser = specifier === 'eventsource-parser';
    const isOwn = target !== undefined && within('infra/client', 'functions/_core', 'functions/_loop');
    if (!isParser && !isOwn) return CLIENT_RULE;
  }
  const packageName = packageOf(specifier);
  return packageName && !runtimePackages.has(packageName) ? `${packageName} is not in dependencies` : undefined;
}

/** The file that a #-path names, from the root. */
function targetOf(specifier: string): string | undefined {
  const alias = aliases.find(({ prefix }) => specifier.startsWith(prefix));
  return alias && alias.folder + specifier.slice(alias.prefix.length);
}

function packageOf(specifier: string): string | undefined {
  if (/^(?:[.#/]|node:|cloudflare:)/.test(specifier)) return undefined;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

function importsOf(source: string): string[] {
  const code = source.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  const form = /^\s*(?:import|export)\b[^;'"]*?\bfrom\s*'([^']+)'|^\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm;
  return [...code.matchAll(form)].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? '');
}

function typeScriptFiles(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.includes('node_modules'))
    .map((file) => `${folder}/${file.replaceAll(path.sep, '/')}`);
}

function read(file: string): string {
  return readFileSync(path.join(root, file), 'utf8');
}

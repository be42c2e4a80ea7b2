/** The kinds of a local instance: the shipped ones, and those of the module that KINDS names. */

import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineKind, type Kind, type KindDefinition } from '#core/kind.ts';
import { createKindRegistry, type KindRegistry } from '#core/kind-registry.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';

/**
 * @param shipped the kinds that every installation serves.
 * @throws {StartError} when the module cannot be loaded, or its kinds do not fit.
 */
export async function loadKinds(shipped: readonly Kind[], module: string | undefined): Promise<KindRegistry> {
  const own = module === undefined ? [] : await importKinds(module);
  try {
    return createKindRegistry([...shipped, ...own]);
  } catch (error) {
    throw new StartError(`KINDS is "${module}": ${messageOf(error)}`, { cause: error });
  }
}

async function importKinds(module: string): Promise<readonly Kind[]> {
  const isPath = module.startsWith('.') || isAbsolute(module) || /\.[cm]?[jt]s$/.test(module);
  const specifier = isPath ? pathToFileURL(resolve(module)).href : module;
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(specifier)) as { readonly default?: unknown };
  } catch (error) {
    throw new StartError(`KINDS is "${module}", which cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
  if (!Array.isArray(loaded.default)) {
    throw new StartError(
      `KINDS is "${module}": its default export must be an array of kinds, each made by defineKind()`,
    );
  }
  try {
    // A kind is a definition too: defining it again checks what JavaScript could not.
    return loaded.default.map((kind: KindDefinition<object, object>) => defineKind(kind));
  } catch (error) {
    throw new StartError(`KINDS is "${module}": ${messageOf(error)}`, { cause: error });
  }
}

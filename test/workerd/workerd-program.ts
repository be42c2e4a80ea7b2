/** The program that wrangler has. @throws when there is none for this machine. */

import { createRequire } from 'node:module';

export function workerdProgram(): string {
  const fromWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
  return (fromWrangler('workerd') as { readonly default: string }).default;
}

/** For programs of a run with a pooler, by `--import`: what opens connections is `pooled-connection.ts`. */

import { registerHooks } from 'node:module';

const REPLACEMENT = new URL('pooled-connection.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier !== '#adapters/postgres/connection.ts') return nextResolve(specifier, context);
    return { url: REPLACEMENT, shortCircuit: true };
  },
});

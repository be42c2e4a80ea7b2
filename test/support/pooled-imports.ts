/** For programs of a run with a pooler, by `--import`: what opens connections is replaced, see `pooled-modules.ts`. */

import { registerHooks } from 'node:module';
import { REPLACED } from '#test/support/pooled-modules.ts';

registerHooks({
  resolve(specifier, context, nextResolve) {
    const replacement = REPLACED.get(specifier);
    return replacement === undefined ? nextResolve(specifier, context) : { url: replacement, shortCircuit: true };
  },
});

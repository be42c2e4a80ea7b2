/**
 * Each function runs wherever JavaScript does: bundled for workerd without compatibility flags, nothing of Node is left
 * in it. What needs a platform is an adapter, and what an adapter needs is told here.
 */

import { describe, expect, it } from 'vitest';
import { bundle, bundleFunction, FUNCTIONS } from '#test/support/function-bundle.ts';

/** A large function starts slowly; an isolate has 128 MiB for all that it does. Minified, in KiB. */
const MOST_KIB = 420;

describe('bundled for workerd without compatibility flags', () => {
  it.each(FUNCTIONS)('functions/%s has no import of Node', async (name) => {
    const { builtins, script } = await bundleFunction(name);
    const kib = Math.ceil(Buffer.byteLength(script) / 1_024);
    expect(builtins).toEqual([]);
    expect(kib).toBeGreaterThan(0);
    expect(kib).toBeLessThan(MOST_KIB);
  });

  it('an adapter that needs Node is found', async () => {
    const { builtins } = await bundle(['adapters/postgres/client.ts']);
    expect(builtins).toContain('adapters/postgres/socket.ts imports node:net');
  });
});

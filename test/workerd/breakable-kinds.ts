/** The kinds of the black-box suites, with a way into the worker: its Durable Objects can be broken off by a request. */

import kinds from '#test/http/kinds.ts';

// Node reads this module too, to register the kinds.
if (globalThis.navigator.userAgent === 'Cloudflare-Workers') await import('#test/workerd/breaking.ts');

// KINDS wants a default export.
// oxlint-disable-next-line import/no-default-export
export default kinds;

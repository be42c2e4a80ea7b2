/** The kinds of a team, bundled beside the shipped ones. `npm run edge` puts the module that KINDS names in this one's place. */

import type { Kind } from '#core/kind.ts';

const ownKinds: readonly Kind[] = [];

// What KINDS names has a default export too.
// oxlint-disable-next-line import/no-default-export
export default ownKinds;

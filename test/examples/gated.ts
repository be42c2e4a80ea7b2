/** A kind whose passes ask the HTTP server at GATE whether they may go on: so a test knows that one runs, and for how long. */

import { defineKind, type Kind } from 'plumbline';
import * as v from 'valibot';

const gated: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Gated',
  plural: 'gateds',
  scope: 'Namespaced',
  spec: v.looseObject({}),
  controllers: [
    {
      name: 'gate',
      async reconcile() {
        await fetch(process.env['GATE'] ?? '');
      },
    },
  ],
});

const kinds: readonly Kind[] = [gated];
export default kinds; // oxlint-disable-line import/no-default-export

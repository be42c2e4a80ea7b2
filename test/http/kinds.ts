/** The kinds of the black-box suites. A deployment under test is started with `KINDS` naming this module. */

import * as v from 'valibot';

import { defineKind, type Kind } from 'plumbline';

/** Permissive: most of the suite is about what surrounds the spec. */
const widget: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: v.looseObject({ size: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1000))) }),
});

/** Born with a finalizer, with a default, pruning what it does not know, and with secrets in spec and status. */
const vault: Kind = defineKind({
  group: 'example.dev',
  version: 'v1beta1',
  kind: 'Vault',
  plural: 'vaults',
  scope: 'Namespaced',
  spec: v.object({
    tier: v.optional(v.picklist(['small', 'large']), 'small'),
    password: v.optional(v.pipe(v.string(), v.minLength(8))),
    users: v.optional(
      v.array(v.object({ name: v.string(), admin: v.optional(v.boolean()), token: v.optional(v.string()) })),
    ),
  }),
  status: v.looseObject({ phase: v.optional(v.picklist(['Open', 'Closed'])) }),
  redact: ['spec.password', 'spec.users.*.token', 'status.unsealKey'],
  finalizers: ['example.dev/vault'],
});

const planet: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Planet',
  plural: 'planets',
  scope: 'Cluster',
  spec: v.looseObject({}),
});

/** With fields that cannot change: one that is required, one with a default, one that may be absent beside a secret. */
const disk: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Disk',
  plural: 'disks',
  scope: 'Namespaced',
  spec: v.looseObject({
    zone: v.string(),
    format: v.optional(v.string(), 'plain'),
    encryption: v.optional(v.looseObject({ cipher: v.optional(v.string()), key: v.optional(v.string()) })),
    size: v.optional(v.number()),
  }),
  redact: ['spec.encryption.key'],
  immutable: ['spec.zone', 'spec.format', 'spec.encryption.cipher'],
});

/** With two controllers elsewhere. */
const site: Kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Site',
  plural: 'sites',
  scope: 'Namespaced',
  spec: v.looseObject({}),
  status: v.looseObject({ address: v.optional(v.string()) }),
  controllersElsewhere: [
    { name: 'dns', conditions: ['Resolvable'], statusFields: ['address'] },
    { name: 'tls', conditions: ['Certified', 'Renewed'], statusFields: ['certificate'] },
  ],
});

// oxlint-disable-next-line import/no-default-export -- what KINDS names has its kinds as the default export
export default [widget, vault, planet, disk, site] satisfies readonly Kind[] as readonly Kind[];

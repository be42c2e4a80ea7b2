/** A kind for tests of the driver and of the test kit: a bucket of a store that lies in memory, and ways to get it wrong. */

import * as v from 'valibot';
import { defineKind, type Kind } from '#core/kind.ts';
import { markerText } from '#core/reconcile/marker.ts';
import { known } from '#core/reconcile/observation.ts';

export interface Bucket {
  readonly size: number;
  readonly marker: string;
}

export interface Buckets {
  list(options: { readonly signal: AbortSignal }): Promise<readonly string[]>;
  read(name: string): Promise<Bucket | undefined>;
  /** @throws when there is one. */
  create(name: string, bucket: Bucket): Promise<void>;
  resize(name: string, size: number): Promise<void>;
  remove(name: string): Promise<void>;
}

/** The store, and what lies in it. */
export function memoryBuckets(): Buckets & { readonly all: Map<string, Bucket> } {
  const all = new Map<string, Bucket>();
  return {
    all,
    list: async () => [...all.keys()],
    read: async (name) => all.get(name),
    async create(name, bucket) {
      if (all.has(name)) throw new Error(`bucket ${name} exists`);
      all.set(name, bucket);
    },
    async resize(name, size) {
      const bucket = all.get(name);
      if (!bucket) throw new Error(`bucket ${name} does not exist`);
      all.set(name, { ...bucket, size });
    },
    async remove(name) {
      all.delete(name);
    },
  };
}

export interface BucketMistakes {
  /** Believes its status rather than its eyes. */
  readonly blind?: boolean;
  /** Takes what it could not read for absent. */
  readonly hasty?: boolean;
  /** Is done with the deletion once it has asked for it. */
  readonly careless?: boolean;
  /** Resizes in every pass. */
  readonly busy?: boolean;
  /** Reports another time in every pass. */
  readonly restless?: boolean;
  /** Says that it is done when resizing fails. */
  readonly lying?: boolean;
}

export interface BucketSpec {
  readonly size: number;
}

export function bucketKind(buckets: Buckets, mistakes: BucketMistakes = {}): Kind<BucketSpec, { seen?: number }> {
  let seen = 0;
  return defineKind({
    group: 'example.dev',
    version: 'v1',
    kind: 'Bucket',
    plural: 'buckets',
    scope: 'Namespaced',
    spec: v.object({ size: v.optional(v.number(), 1) }),
    controllers: [
      {
        name: 'bucket',
        statusFields: ['seen'],
        async reconcile(ctx) {
          const { name } = ctx.object.metadata;
          const { size } = ctx.object.spec;
          if (mistakes.restless) ctx.report('seen', (seen += 1));
          const observed = await ctx.observe('bucket', name, () => buckets.read(name));
          const found = mistakes.hasty && observed.state === 'unknown' ? undefined : known(observed, `bucket ${name}`);
          if (mistakes.blind ? ctx.object.status.seen === undefined : !found) {
            await ctx.act('create', () => buckets.create(name, { size, marker: markerText(ctx.marker) }));
          } else if (found?.size !== size || mistakes.busy) {
            const resizing = ctx.act('resize', () => buckets.resize(name, size));
            await (mistakes.lying ? resizing.catch(() => undefined) : resizing);
            ctx.event('Normal', 'Resized', `to ${size}`);
          }
          if (mistakes.blind) ctx.report('seen', 1);
        },
        async finalize(ctx) {
          const { name } = ctx.object.metadata;
          const look = () => ctx.observe('bucket', name, () => buckets.read(name));
          const found = await look();
          if (mistakes.careless) {
            ctx.release('bucket', name);
            void buckets.remove(name).catch(() => undefined);
            return { finalized: true };
          }
          if (mistakes.hasty && found.state === 'unknown') {
            ctx.release('bucket', name);
            return { finalized: true };
          }
          if (known(found, `bucket ${name}`)) await ctx.act('remove', () => buckets.remove(name));
          await look();
          return { finalized: true };
        },
      },
    ],
  });
}

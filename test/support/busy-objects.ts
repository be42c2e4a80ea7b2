/**
 * Objects for which a run has everything to do that there is: one is new, one has changed, one is older than its controller's
 * finalizer, one is on its way out, one has lost its owner, and a watched one concerns another. What comes of them is the
 * same, however often their passes are begun.
 */

import * as v from 'valibot';
import { defineKind, type Kind } from '#core/kind.ts';
import { known } from '#core/reconcile/observation.ts';
import type { OwnerReference, ResourceObject } from '#core/resource.ts';
import type { Actor, FencedThings, Things } from '#test/support/fenced-things.ts';
import { type Context, probeKind, type Reconciling } from '#test/support/reconciling.ts';

const part: Kind<{ size: number }> = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Part',
  plural: 'parts',
  scope: 'Namespaced',
  spec: v.object({ size: v.number() }),
});
const source = probeKind('Source');

/** Probes keep a thing outside and a part, and tell how many sources there are. */
export function busyKinds(things: Things): readonly Kind[] {
  const look = async (ctx: Context): Promise<number | undefined> => {
    const { name } = ctx.object.metadata;
    return known(await ctx.observe('thing', name, () => things.read(name)), name);
  };
  const probe = probeKind('Probe', {
    name: 'probe',
    statusFields: ['size', 'sources'],
    watches: [
      {
        kind: source,
        async map({ spec }, { list }) {
          const probes = await list(probe, 'acme');
          return probes
            .filter(({ metadata }) => metadata.name === spec?.['probe'])
            .map((each) => ({ uid: uidOf(each) }));
        },
      },
    ],
    reconcile: (ctx) =>
      within(ctx, async (actor) => {
        const { name } = ctx.object.metadata;
        const { size } = ctx.object.spec;
        const isOther = (await look(ctx)) !== size;
        if (isOther) await ctx.act('put', () => things.put(actor, name, size));
        await ctx.children(part).apply(`${name}-part`, { spec: { size } });
        ctx.report('sources', (await ctx.list(source)).length);
        ctx.report('size', await look(ctx));
        if (isOther) ctx.event('Normal', 'Resized', `to ${size}`);
      }),
    async finalize(ctx) {
      await within(ctx, async (actor) => {
        const { name } = ctx.object.metadata;
        await ctx.children(part).remove(`${name}-part`);
        if ((await look(ctx)) !== undefined) await ctx.act('remove', () => things.remove(actor, name));
        await look(ctx);
      });
      return { finalized: true };
    },
  });
  return [part, source, probe];

  async function within(ctx: Context, work: (actor: Actor) => Promise<void>): Promise<void> {
    const { fencingToken, object } = ctx;
    const actor = { uid: object.metadata.uid, fencingToken };
    await ctx.act('begin', () => things.begin(actor));
    try {
      await work(actor);
    } finally {
      await things.end(actor);
    }
  }
}

/** Makes the objects, and all of it due. @param run runs all passes that are due. */
export async function makeBusy(world: Reconciling, run: () => Promise<unknown>): Promise<void> {
  for (const name of ['changed', 'old', 'going']) await world.create('Probe', name, { size: 1 });
  await run();
  const going = await world.get('Probe', 'going');
  await world.create('Part', 'left', { size: 1 }, { ownerReferences: [ownerOf(going)] });
  await world.sql`update plumbline.resource set finalizers = '{}' where name = 'old'`;
  for (const name of ['changed', 'old']) await world.update('Probe', name, { size: 2 });
  await world.create('Probe', 'made', { size: 3 });
  await world.create('Source', 'source', { probe: 'changed' });
  await world.delete('Probe', 'going');
}

function ownerOf(object: ResourceObject | undefined): OwnerReference {
  if (!object) throw new Error('the object that is to go is not there');
  const { apiVersion, kind, metadata } = object;
  return { apiVersion, kind, name: metadata.name, uid: uidOf(object) };
}

function uidOf({ metadata }: ResourceObject): string {
  if (metadata.uid === undefined) throw new Error('a stored object has a uid');
  return metadata.uid;
}

/** What has come of them, without what differs from run to run. */
export async function whatCameOf(world: Reconciling, things: FencedThings): Promise<object> {
  const statuses = await world.sql`select name, status -> 'size' as size, status -> 'sources' as sources, spec
    from plumbline.resource where api_group = 'example.dev' order by kind, name`;
  return {
    outcomes: await world.outcomes(),
    statuses: [...statuses],
    things: Object.fromEntries(things.all),
    // Items are due at their resync, no lease is held, nothing waits.
    due: [
      ...(await world.sql`select w.controller, w.class, w.attempts, w.last_error from plumbline.work_item w
        where w.class < 3 or w.attempts > 0 or w.lost_passes > 0`),
    ],
    held: [...(await world.sql`select uid from plumbline.pass_lease where expires_at > clock_timestamp()`)],
    waiting: [
      ...(await world.sql`select 'touch' as what from plumbline.touch union all select 'watch change' from plumbline.watch_change`),
    ],
  };
}

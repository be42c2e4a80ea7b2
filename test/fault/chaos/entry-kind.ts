/**
 * A kind with two controllers, each of which keeps one part of an external entry, and tells the trail when its pass begins
 * and ends. Passes of both share the object, and so its lease.
 */

import * as v from 'valibot';
import { defineKind, type Kind } from '#core/kind.ts';
import type { PassContext } from '#core/reconcile/context.ts';
import type { ControllerDefinition } from '#core/reconcile/controller.ts';
import { known } from '#core/reconcile/observation.ts';
import type { Actor, Part, Trail } from '#test/fault/chaos/trail.ts';

export const PARTS = ['size', 'colour'] as const;
export type PartName = (typeof PARTS)[number];
export type EntrySpec = Readonly<Record<PartName, string>>;
/** `sizeBy`, `colourBy`: the token of the pass that changed the part last. */
export type EntryStatus = Readonly<Partial<Record<`${PartName}By`, string>>>;

/** Conditions that sum up what the two do. */
export const SUMMARIES: Readonly<Record<PartName, string>> = { size: 'Ready', colour: 'Coloured' };

type Context = PassContext<EntrySpec, EntryStatus>;

/** Passes take a moment, in which their process can be killed or frozen. */
const LONGEST_THOUGHT_MS = 60;
/** Of changes that are made and said to have failed. */
const LATE_SUCCESSES = 0.05;

/** @param holder names the process in the trail. */
export function entryKind(trail: Trail, holder: string): Kind {
  const kind = defineKind<EntrySpec, EntryStatus>({
    group: 'chaos.dev',
    version: 'v1',
    kind: 'Entry',
    plural: 'entries',
    scope: 'Namespaced',
    spec: v.object({ size: v.string(), colour: v.string() }),
    controllers: PARTS.map((part) => keeper(part)),
  });
  return kind;

  function keeper(part: PartName): ControllerDefinition<EntrySpec, EntryStatus> {
    return {
      name: part,
      summary: SUMMARIES[part],
      statusFields: [`${part}By`],
      reconcile: async (ctx) => within(ctx, part, (actor) => keep(ctx, actor, part)),
      async finalize(ctx) {
        await within(ctx, part, (actor) => remove(ctx, actor, part));
        return { finalized: true };
      },
    };
  }

  async function within(ctx: Context, controller: PartName, use: (actor: Actor) => Promise<void>): Promise<void> {
    const { fencingToken } = ctx;
    const actor: Actor = { uid: ctx.object.metadata.uid, fencingToken, controller, holder };
    await ctx.act('begin', () => trail.tell(actor, 'begin'));
    await think();
    await use(actor);
    await think();
    await ctx.act('end', () => trail.tell(actor, 'end'));
  }

  async function keep(ctx: Context, actor: Actor, part: PartName): Promise<void> {
    const wanted = ctx.object.spec[part];
    const found = await look(ctx, part);
    if (found && found.uid !== actor.uid) throw new Error(`${entryOf(ctx)} is of ${found.uid}, which should be gone`);
    if (found?.value === wanted) return;
    await ctx.act('change', () => putLate(actor, entryOf(ctx), part, wanted));
    if (Math.random() < LATE_SUCCESSES) throw new Error('the change was made, and the answer was lost');
    ctx.report(`${part}By`, String(actor.fencingToken));
    await look(ctx, part);
  }

  async function remove(ctx: Context, actor: Actor, part: PartName): Promise<void> {
    if (!(await look(ctx, part))) return;
    await ctx.act('remove', () => putLate(actor, entryOf(ctx), part, undefined));
    if (await look(ctx, part)) throw new Error(`${part} of ${entryOf(ctx)} is there again`);
  }

  /** As a client that keeps requests in a queue: the lease was held when it was asked, and need not be when it sends. */
  async function putLate(...change: Parameters<Trail['put']>): Promise<void> {
    await think();
    await trail.put(...change);
  }

  async function look(ctx: Context, part: PartName): Promise<Part | undefined> {
    const entry = entryOf(ctx);
    return known(await ctx.observe('part', `${entry}/${part}`, () => trail.read(entry, part)), `${part} of ${entry}`);
  }
}

function entryOf({ tenant, object }: Context): string {
  return `${tenant}/${object.metadata.name}`;
}

async function think(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_THOUGHT_MS));
}

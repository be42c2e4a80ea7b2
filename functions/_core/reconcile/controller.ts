/**
 * Controllers: what a kind says of how the real world is made to match. A kind may have several; each has a name, one
 * finalizer, its own condition types and its own fields of the status, and touches nothing else.
 */

import type { Kind } from '#core/kind.ts';
import { dnsLabelProblem } from '#core/names.ts';
import type { PassContext, WatchContext } from '#core/reconcile/context.ts';
import { type FinalizeResult, REASON, type ReconcileResult } from '#core/reconcile/outcome.ts';
import type { OrphanSweep } from '#core/reconcile/sweep.ts';
import type { ResourceObject } from '#core/resource.ts';

/** Names a kind without its schemas, so that kinds can name each other. */
export type KindName = Pick<Kind, 'group' | 'kind'>;

/** Another kind whose changes concern objects of this one. */
export interface WatchDefinition {
  readonly kind: KindName;
  /**
   * Names of the objects, in the same tenant, that a change of `object` concerns; for a watched cluster-scoped kind or
   * an owner elsewhere, `{ uid }`. Called with the state before and after each change, with the last state of what was
   * deleted, and again after a crash; secret paths are left out.
   */
  map(object: ResourceObject, ctx: WatchContext): Promise<readonly WatchTarget[]> | readonly WatchTarget[];
}

export type WatchTarget = { readonly name: string } | { readonly uid: string };

export interface ControllerDefinition<Spec extends object, Status extends object> {
  /** A DNS label, unique in its group, such as `database`. */
  readonly name: string;
  /**
   * The condition that sums it up. The driver sets it on every pass: true when the pass is done, false or unknown when it
   * failed or waits. @default Ready
   */
  readonly summary?: string;
  /** Types of further conditions that it sets. */
  readonly conditions?: readonly string[];
  /** Top-level fields of the status that it reports. */
  readonly statusFields?: readonly string[];
  /** How long a pass may take. @default 60,000 */
  readonly timeoutMs?: number;
  /** The world is looked at again after this long, give or take a fifth, though nothing changed. @default 600,000 */
  readonly resyncMs?: number;
  readonly watches?: readonly WatchDefinition[];
  /** Makes the world match the object. Called again and again; each step must bear being repeated. */
  reconcile(ctx: PassContext<Spec, Status>): Promise<ReconcileResult | void>;
  /**
   * Undoes what `reconcile` did, until everything is seen to be absent. With it the controller has a finalizer, and no
   * object goes before it agrees.
   */
  finalize?(ctx: PassContext<Spec, Status>): Promise<FinalizeResult>;
  /** Finds and removes what bears our marker and whose object is gone; runs only where the installation says so. */
  readonly sweep?: OrphanSweep;
}

/** A checked controller, with its defaults. */
export interface Controller<Spec extends object = object, Status extends object = object> extends ControllerDefinition<
  Spec,
  Status
> {
  /** `group/name`: its name in the store, in logs, in metrics. */
  readonly id: string;
  /** The same, when it has `finalize`. */
  readonly finalizer: string | undefined;
  readonly summary: string;
  readonly conditions: readonly string[];
  readonly statusFields: readonly string[];
  readonly timeoutMs: number;
  readonly resyncMs: number;
  readonly watches: readonly WatchDefinition[];
}

/** Conditions and fields that the driver itself sets, whoever the controllers are. */
export const DRIVER_CONDITIONS: readonly string[] = ['DeletionBlocked', 'OwnershipConflict', 'Paused'];
export const DRIVER_FIELDS: readonly string[] = ['observedGeneration', 'conditions', 'resources', 'lastReconcileNow'];

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RESYNC_MS = 600_000;

/** What is wrong with the parts of a status that a controller would have to itself. */
export function shareProblems(conditions: readonly string[], statusFields: readonly string[]): string[] {
  const problems: string[] = [];
  for (const type of conditions) {
    if (!REASON.test(type)) problems.push(`has the condition ${JSON.stringify(type)}, which must be in PascalCase`);
    if (DRIVER_CONDITIONS.includes(type)) problems.push(`has the condition ${type}, which is the driver's`);
  }
  for (const field of statusFields) {
    if (DRIVER_FIELDS.includes(field)) problems.push(`has the status field ${field}, which is the driver's`);
  }
  return problems;
}

/** With its defaults; adds to `problems` what is wrong. Definitions may come from JavaScript. */
export function checkController<Spec extends object, Status extends object>(
  group: string,
  definition: ControllerDefinition<Spec, Status>,
  problems: string[],
): Controller<Spec, Status> {
  const { name, timeoutMs = DEFAULT_TIMEOUT_MS, resyncMs = DEFAULT_RESYNC_MS } = definition;
  const summary = definition.summary ?? 'Ready';
  const conditions = definition.conditions ?? [];
  const statusFields = definition.statusFields ?? [];
  const wrong = (problem: string): unknown => problems.push(`controller ${JSON.stringify(name)} ${problem}`);
  const nameProblem = typeof name === 'string' ? dnsLabelProblem(name) : 'must be a text';
  if (nameProblem !== undefined) wrong(nameProblem);
  for (const problem of shareProblems([summary, ...conditions], statusFields)) wrong(problem);
  for (const [field, ms] of Object.entries({ timeoutMs, resyncMs })) {
    if (!(Number.isFinite(ms) && ms >= 100)) wrong(`has the ${field} ${ms}, which must be 100 at least`);
  }
  if (typeof definition.reconcile !== 'function') wrong('has no function "reconcile"');
  const id = `${group}/${name}`;
  const finalizer = definition.finalize === undefined ? undefined : id;
  const watches = definition.watches ?? [];
  return Object.freeze({
    ...definition,
    id,
    finalizer,
    summary,
    conditions,
    statusFields,
    timeoutMs,
    resyncMs,
    watches,
  });
}

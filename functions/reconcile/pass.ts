/** One pass from its claim to its end. */

import { parseJsonObject, type JsonObject } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import type { ClaimedPass, FinishOutcome, PassEnd, Report } from '#core/ports/work-queue.ts';
import type { Controller } from '#core/reconcile/controller.ts';
import { readFinalizeResult, readReconcileResult, TerminalError } from '#core/reconcile/outcome.ts';
import { validateDocument } from '#core/schema-causes.ts';
import { callInTime } from '#functions/reconcile/call-in-time.ts';
import type { PassResult, ReconcileDeps } from '#functions/reconcile/deps.ts';
import { Findings, resourcesOf } from '#functions/reconcile/findings.ts';
import { finishPass } from '#functions/reconcile/finish-pass.ts';
import { createPassContext } from '#functions/reconcile/pass-context.ts';
import { LeaseLost, type PassSignal, ProcessStops } from '#functions/reconcile/pass-signal.ts';
import { secretHider } from '#functions/reconcile/secret-texts.ts';
import { abandoned, failed, finalized, nextLook, reconciled, type Verdict } from '#functions/reconcile/verdict.ts';

/** Annotations that every kind obeys. `paused`: "true" stops passes, but never those of a deletion. */
export const PAUSED = 'plumbline.dev/paused';
/** Any change of it is a reason for a pass; the value is told in `status.lastReconcileNow` when that was done. */
export const RECONCILE_NOW = 'plumbline.dev/reconcile-now';

export interface PassOptions {
  readonly deps: ReconcileDeps;
  readonly kind: Kind;
  readonly controller: Controller;
  readonly pass: ClaimedPass;
  readonly passSignal: PassSignal;
  readonly installation: string;
  /** The function has ended, or is not waited for any more: what is left is to tell the store. */
  readonly onFunctionEnded?: () => void;
}

export interface PassEnded {
  readonly result: PassResult;
  readonly outcome: FinishOutcome;
  /** When it is due next, in milliseconds. */
  readonly nextMs: number;
  /** Resolves when the function has ended, which it did not do when it was told to. */
  readonly hung?: Promise<void> | undefined;
}

const FENCED: PassEnded = { result: 'fenced', outcome: 'fenced', nextMs: 0 };
/** A deletion's condition is put together in the store, from all who wait. */
const NOTHING_NEW: Report = { conditions: [], removedConditions: [], fields: {}, removedFields: [] };

/** What a pass knows and finds. */
interface Scene extends PassOptions {
  readonly status: JsonObject;
  readonly annotations: JsonObject;
  readonly isDeleting: boolean;
  /** As the kind's schema gives it; as it is stored, where the schema refuses it. */
  readonly spec: JsonObject;
  readonly specProblem: string | undefined;
  /** The controller's finalizer is on the object. */
  readonly isHeld: boolean;
  readonly findings: Findings;
  /** Takes secrets out of a text. */
  readonly hide: (text: string) => string;
}

/** @throws when the store cannot be told of the end before the lease is over; the pass is repeated then. */
export async function runPass(options: PassOptions): Promise<PassEnded> {
  const scene = sceneOf(options);
  const { controller, pass, findings, isDeleting, annotations } = scene;
  if (isDeleting && !scene.isHeld) return end(scene, skipped(scene));
  if (!isDeleting && annotations[PAUSED] === 'true') {
    findings.condition('Paused', 'True', 'PausedByAnnotation', `the annotation ${PAUSED} is "true"`);
    return end(scene, skipped(scene));
  }
  findings.removeCondition('Paused');
  if (annotations[RECONCILE_NOW] !== undefined) findings.field('lastReconcileNow', annotations[RECONCILE_NOW]);
  // Once is an accident: a process was killed.
  if (pass.wasAbandoned && pass.lostPasses > 1) return end(scene, abandoned(pass.lostPasses));
  const { hide } = scene;
  if (!isDeleting && scene.specProblem !== undefined) {
    // The schema has become stricter since it was written.
    const error = new TerminalError('InvalidSpec', scene.specProblem);
    return end(scene, failed(controller, findings, { error, attempts: pass.attempts, isDeleting, hide }));
  }
  // Before anything is done for it: whoever deletes the object then waits until it is undone.
  const needsFinalizer = !isDeleting && controller.finalizer !== undefined && !scene.isHeld;
  if (needsFinalizer && !(await options.deps.queue.addFinalizer(pass))) {
    // Its deletion was requested a moment ago, or the lease is lost: in either case another pass tells.
    return end(scene, { ...skipped(scene), next: { itemClass: 1, afterMs: 0 } });
  }

  const { settled, hung } = await callInTime(() => call(scene), options.passSignal, controller.timeoutMs);
  if ('value' in settled) return end(scene, settled.value, hung);
  const { error } = settled;
  if (error instanceof LeaseLost) return { ...FENCED, hung };
  if (error instanceof ProcessStops) return end(scene, { ...skipped(scene), next: { itemClass: 1, afterMs: 0 } }, hung);
  return end(scene, failed(controller, findings, { error, attempts: pass.attempts, isDeleting, hide }), hung);
}

function sceneOf(options: PassOptions): Scene {
  const { row } = options.pass;
  const status = parseJsonObject(row.status);
  const { finalizer, id } = options.controller;
  const stored = parseJsonObject(row.spec);
  const { document, causes } = validateDocument('spec', stored, options.kind.spec, options.kind.redact);
  return {
    ...options,
    spec: document ?? stored,
    specProblem: causes?.map(({ field, message }) => `${field}: ${message}`).join('; '),
    status,
    annotations: parseJsonObject(row.annotations),
    isDeleting: row.deletionTimestamp !== null,
    isHeld: finalizer !== undefined && row.finalizers.includes(finalizer),
    findings: new Findings(row.generation, resourcesOf(status, id)),
    hide: secretHider(row, options.kind.redact),
  };
}

async function call(scene: Scene): Promise<Verdict> {
  const { deps, controller, pass, findings } = scene;
  const { row } = pass;
  const ctx = createPassContext({
    ...scene,
    deadlineMs: Date.now() + controller.timeoutMs,
    objects: deps.objects,
    log: deps.logger.child({
      controller: controller.id,
      tenant: row.tenant,
      kind: row.kind,
      name: row.name,
      uid: row.uid,
      pass: String(pass.fencingToken),
    }),
  });
  if (scene.isDeleting) {
    const result = readFinalizeResult(await controller.finalize?.(ctx));
    findings.assertNothingUnderWay();
    findings.assertBounded();
    return finalized(controller, findings, result);
  }
  const result = readReconcileResult(await controller.reconcile(ctx));
  findings.assertNothingUnderWay();
  findings.assertBounded();
  return reconciled(controller, findings, result);
}

function skipped({ controller }: Scene): Verdict {
  return { result: 'skipped', finalized: false, isTerminal: false, next: nextLook(controller) };
}

async function end(scene: Scene, { result, ...verdict }: Verdict, hung?: Promise<void>): Promise<PassEnded> {
  scene.onFunctionEnded?.();
  const { pass, status, findings, hide } = scene;
  const isLooked = result !== 'skipped';
  const isTold = isLooked || findings.conditions.size > 0;
  const report = isTold
    ? (findings.report(status, scene.controller.id, hide) ?? (scene.isDeleting ? NOTHING_NEW : undefined))
    : undefined;
  const { blocked } = verdict;
  const passEnd: PassEnd = {
    ...verdict,
    ...(blocked && { blocked: { ...blocked, message: hide(blocked.message) } }),
    // What was not looked at was not observed.
    generation: isLooked ? pass.row.generation : Number(status['observedGeneration'] ?? 0),
    report,
    events: findings.events.map((event) => ({ ...event, message: hide(event.message) })),
    keepLease: hung !== undefined,
  };
  const outcome = await finishPass(scene, passEnd);
  return { result: outcome === 'fenced' ? 'fenced' : result, outcome, nextMs: verdict.next.afterMs, hung };
}

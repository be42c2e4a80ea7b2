/** The context that a reconcile function gets: it looks, acts and reports through it, and cannot act without the lease. */

import { type JsonObject, type JsonValue, parseJson } from '#core/json.ts';
import { apiVersionOf, type Kind } from '#core/kind.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { ClaimedPass, PassObjects } from '#core/ports/work-queue.ts';
import { type Children, OwnershipConflict, type PassContext } from '#core/reconcile/context.ts';
import type { Controller, KindName } from '#core/reconcile/controller.ts';
import { observe, type Observation } from '#core/reconcile/observation.ts';
import { REASON } from '#core/reconcile/outcome.ts';
import { resourceObject } from '#core/resource-json.ts';
import type { ResourceObject } from '#core/resource.ts';
import { validateDocument } from '#core/schema-causes.ts';
import type { Findings } from '#functions/reconcile/findings.ts';
import { yieldToOthers } from '#loop/yield-to-others.ts';
import { LeaseLost, type PassSignal } from '#functions/reconcile/pass-signal.ts';

export interface PassContextOptions {
  readonly kind: Kind;
  readonly controller: Controller;
  readonly pass: ClaimedPass;
  /** Of the object, as the kind's schema gives it. */
  readonly spec: JsonObject;
  readonly installation: string;
  readonly findings: Findings;
  readonly passSignal: PassSignal;
  readonly deadlineMs: number;
  readonly objects: PassObjects;
  readonly log: Logger;
}

export function createPassContext(options: PassContextOptions): PassContext {
  const { kind, controller, pass, installation, findings, passSignal, objects } = options;
  const { row } = pass;
  const owned = [controller.summary, ...controller.conditions];
  return {
    // One without status has none in its JSON.
    object: { status: {}, ...resourceObject(row), spec: options.spec } as PassContext['object'],
    tenant: row.tenant,
    marker: { installation, kind: `${kind.group}/${kind.kind}`, uid: row.uid },
    fencingToken: pass.fencingToken,
    attempt: pass.attempts,
    signal: passSignal.signal,
    deadlineMs: options.deadlineMs,
    log: options.log,

    async observe<Value>(
      resourceClass: string,
      id: string,
      read: (signal: AbortSignal) => Promise<Value | undefined>,
    ): Promise<Observation<Value>> {
      passSignal.assertHeld();
      const observation = await findings.whileUnderWay(`observe("${resourceClass}", "${id}")`, () =>
        observe(() => read(passSignal.signal)),
      );
      const { state } = observation;
      const message = state === 'unknown' ? messageOf(observation.error) : undefined;
      findings.observed({ class: resourceClass, id, state, ...(message !== undefined && { message }) });
      return observation;
    },

    async act<Value>(what: string, call: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
      passSignal.assertHeld();
      options.log.debug({ what }, 'acting');
      return findings.whileUnderWay(`act("${what}")`, async () => {
        // Where the clock stands still while code runs, it moves now; a renewal that is due is made.
        await yieldToOthers();
        passSignal.assertHeld();
        return call(passSignal.signal);
      });
    },

    release: (resourceClass, id) => findings.released({ class: resourceClass, id }),

    condition(type, status, reason, message = ''): void {
      if (!owned.includes(type)) {
        throw new TypeError(
          `controller ${controller.id} does not own the condition ${type}; it declares ${owned.join(', ')}`,
        );
      }
      if (!STATUSES.includes(status)) {
        throw new TypeError(
          `the status of condition ${type} must be "True", "False" or "Unknown", not ${asText(status)}`,
        );
      }
      if (!REASON.test(reason)) {
        throw new TypeError(
          `the reason of condition ${type} must be a word in PascalCase, not ${JSON.stringify(reason)}`,
        );
      }
      findings.condition(type, status, reason, asText(message));
    },

    report(field: string, value: JsonValue | undefined): void {
      if (!controller.statusFields.includes(field)) {
        const declared = controller.statusFields.join(', ') || 'none';
        throw new TypeError(
          `controller ${controller.id} does not own the status field ${field}; it declares ${declared}`,
        );
      }
      findings.field(field, asJson(field, value));
    },

    event(type, reason, message): void {
      if (type !== 'Normal' && type !== 'Warning') {
        throw new TypeError(`the type of an event must be "Normal" or "Warning", not ${asText(type)}`);
      }
      findings.events.push({ type, reason: asText(reason), message: asText(message) });
    },
    get: (of, name) => objects.get(row.tenant, of, name),
    list: (of) => objects.list(row.tenant, of),
    children: (of) => childrenOf(of, options),
  };
}

const STATUSES: readonly string[] = ['True', 'False', 'Unknown'];

/** Functions in JavaScript say anything. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
}

/** @throws {TypeError} for what is no JSON, such as a function, or an object that is part of itself. */
function asJson(field: string, value: JsonValue | undefined): JsonValue | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new TypeError(`the status field ${field} cannot be reported: ${messageOf(error)}`, { cause: error });
  }
  if (text === undefined) throw new TypeError(`the status field ${field} cannot be reported: it is a ${typeof value}`);
  return parseJson(text);
}

function childrenOf<Spec extends object>(
  of: Kind<Spec>,
  { pass, objects, passSignal }: PassContextOptions,
): Children<Spec> {
  const name: KindName = { group: of.group, kind: of.kind };
  return {
    async list(): Promise<readonly ResourceObject[]> {
      const all = await objects.list(pass.row.tenant, name);
      return all.filter(({ metadata }) =>
        metadata.ownerReferences?.some((owner) => owner.uid === pass.row.uid && owner.controller === true),
      );
    },

    async apply(childName, { spec, labels = {} }): Promise<void> {
      passSignal.assertHeld();
      const { document, causes } = validateDocument('spec', spec as JsonObject, of.spec, of.redact);
      if (causes) {
        const said = causes.map(({ field, message }) => `${field}: ${message}`).join('; ');
        throw new TypeError(`the child ${of.kind} "${childName}" would be invalid: ${said}`);
      }
      const outcome = await objects.applyChild(pass, { kind: name, name: childName, labels, spec: document });
      if (outcome === 'fenced') throw lost(passSignal);
      if (outcome === 'conflict') {
        throw new OwnershipConflict(
          `${apiVersionOf(of)} ${of.kind} "${childName}" is not owned by this object; it was left as it is`,
        );
      }
      if (outcome === 'deleting') throw new Error(`the child ${of.kind} "${childName}" is still being deleted`);
    },

    async remove(childName): Promise<void> {
      passSignal.assertHeld();
      if (!(await objects.removeChild(pass, name, childName))) throw lost(passSignal);
    },
  };
}

function lost(passSignal: PassSignal): LeaseLost {
  const error = new LeaseLost('another pass of this object has begun');
  passSignal.end(error);
  return error;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 1_024);
}

/**
 * The driver's passes over objects in memory: what a controller does to the real world, one pass at a time, and with a
 * process that dies where the test wants it to.
 */

import { randomUUID } from 'node:crypto';
import { isJsonArray, isJsonObject, parseJsonObject, type JsonObject, type JsonValue } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import type { ClaimedPass, PassEnd, PassObjects, WorkQueue } from '#core/ports/work-queue.ts';
import { resourceObject } from '#core/resource-json.ts';
import type { ResourceObject, ResourceRow } from '#core/resource.ts';
import { validateDocument } from '#core/schema-causes.ts';
import { type PassOptions, runPass } from '#functions/reconcile/pass.ts';
import { PassSignal } from '#functions/reconcile/pass-signal.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

export interface PassDone {
  /** `done`, `not-ready`, `error`, `terminal`, `blocked`, `finalized`. */
  readonly result: string;
  readonly error: string | undefined;
  readonly nextMs: number;
  readonly events: readonly string[];
}

export interface MemoryPasses {
  readonly tenant: string;
  readonly tenantUid: string;
  readonly installation: string;
  /** Creates or changes an object. */
  put(kind: Kind, name: string, spec: JsonObject): void;
  /** Requests its deletion. */
  remove(kind: Kind, name: string): void;
  /** Undefined when there is none any more. */
  read(kind: Kind, name: string): ResourceObject | undefined;
  /** One field of its status, secrets too; empty when it is no text. */
  text(kind: Kind, name: string, field: string): string;
  /** Its status with the secrets. */
  status(kind: Kind, name: string): JsonObject;
  /** One pass. @param options `isDead` is asked at its end: whether the process died before it told the store. */
  pass(
    kind: Kind,
    name: string,
    options?: { readonly isDead?: () => boolean; readonly signal?: PassSignal },
  ): Promise<PassDone>;
  /** Passes until none is asked for at once, or one fails. */
  settle(kind: Kind, name: string): Promise<PassDone>;
  /** Changes what `list` gives, such as to an error. */
  onList(before: () => Promise<void>): void;
}

const LEASE_MS = 60_000;

interface Stored extends Omit<ResourceRow, 'generation' | 'deletionTimestamp' | 'finalizers' | 'status' | 'spec'> {
  generation: number;
  deletionTimestamp: Date | null;
  finalizers: readonly string[];
  status: string;
  spec: string;
}

export function createMemoryPasses(tenant: string, installation: string): MemoryPasses {
  const rows = new Map<string, Stored>();
  const tenantUid = randomUUID();
  let fencingToken = 0n;
  let beforeList = async (): Promise<void> => undefined;

  const objects: Pick<PassObjects, 'get' | 'list'> = {
    async get(_tenant, { kind }, name) {
      if (kind === 'Tenant') {
        const metadata = { name: tenant, uid: tenantUid };
        return { apiVersion: 'plumbline.dev/v1', kind, metadata };
      }
      return publicObject(rows.get(`${kind}/${name}`));
    },
    async list(_tenant, { kind }) {
      await beforeList();
      return [...rows.values()].filter((row) => row.kind === kind).flatMap((row) => publicObject(row) ?? []);
    },
  };

  const passes: MemoryPasses = {
    tenant,
    tenantUid,
    installation,
    put(kind, name, spec) {
      const { document, causes } = validateDocument('spec', spec, kind.spec, kind.redact);
      if (causes) throw new Error(JSON.stringify(causes));
      const existing = rows.get(`${kind.kind}/${name}`);
      if (existing) {
        existing.generation += 1;
        existing.spec = JSON.stringify(document);
      } else rows.set(`${kind.kind}/${name}`, newRow(kind, name, JSON.stringify(document)));
    },
    remove(kind, name) {
      const row = rowOf(kind, name);
      row.deletionTimestamp ??= new Date();
      row.generation += 1;
    },
    read: (kind, name) => publicObject(rows.get(`${kind.kind}/${name}`)),
    status: (kind, name) => parseJsonObject(rowOf(kind, name).status),
    text: (kind, name, field) => textOf(parseJsonObject(rowOf(kind, name).status), field),
    pass,
    async settle(kind, name) {
      for (;;) {
        const done = await pass(kind, name);
        if (done.nextMs > 0 || done.result === 'finalized') return done;
      }
    },
    onList(before) {
      beforeList = before;
    },
  };
  return passes;

  async function pass(
    kind: Kind,
    name: string,
    { isDead = () => false, signal = new PassSignal(LEASE_MS) }: Parameters<MemoryPasses['pass']>[2] = {},
  ): Promise<PassDone> {
    const [controller] = kind.controllers;
    if (!controller) throw new Error(`${kind.kind} has no controller`);
    const row = rowOf(kind, name);
    const claimed: ClaimedPass = {
      controller: controller.id,
      row: { ...row },
      fencingToken: (fencingToken += 1n),
      wasAbandoned: false,
      touches: 0n,
      attempts: 0,
      itemClass: 1,
    };
    let told: PassEnd | undefined;
    const queue: Pick<WorkQueue, 'finish' | 'addFinalizer'> = {
      async addFinalizer() {
        row.finalizers = [...new Set([...row.finalizers, controller.finalizer ?? ''])];
        return true;
      },
      async finish(_pass, end) {
        told = end;
        if (!isDead()) apply(row, end, controller.id);
        return 'finished';
      },
    };
    const deps = { queue, objects, logger: silentLogger } as unknown as PassOptions['deps'];
    const ended = await runPass({ deps, kind, controller, pass: claimed, passSignal: signal, installation });
    const events = told?.events.map(({ reason, message }) => `${reason}: ${message}`) ?? [];
    return { result: ended.result, error: told?.error, nextMs: ended.nextMs, events };
  }

  function apply(row: Stored, end: PassEnd, controller: string): void {
    const { report } = end;
    if (report) {
      const status = parseJsonObject(row.status);
      const conditions = [status['conditions'] ?? []].flat().filter(isJsonObject);
      const renewed = [...report.conditions.map(({ type }) => type), ...report.removedConditions];
      const kept = conditions.filter((condition) => !renewed.includes(textOf(condition, 'type')));
      const fields = Object.entries({ ...status, ...report.fields }).filter(
        ([key]) => !report.removedFields.includes(key),
      );
      const merged: Record<string, JsonValue> = {
        ...Object.fromEntries(fields),
        observedGeneration: end.generation,
        conditions: [...kept, ...report.conditions.map((condition) => ({ ...condition }))],
      };
      if (report.resources) merged['resources'] = report.resources.map((resource) => ({ ...resource, controller }));
      row.status = JSON.stringify(merged);
    }
    if (end.finalized) rows.delete(`${row.kind}/${row.name}`);
  }

  function rowOf(kind: Kind, name: string): Stored {
    const row = rows.get(`${kind.kind}/${name}`);
    if (!row) throw new Error(`there is no ${kind.kind} "${name}"`);
    return row;
  }

  function newRow(kind: Kind, name: string, spec: string): Stored {
    return {
      uid: randomUUID(),
      tenant,
      group: kind.group,
      version: kind.version,
      kind: kind.kind,
      name,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: new Date(),
      deletionTimestamp: null,
      finalizers: kind.finalizers,
      labels: '{}',
      annotations: '{}',
      ownerReferences: '[]',
      spec,
      status: '{}',
    };
  }
}

/** Without the secrets of the shipped kinds. */
function publicObject(row: Stored | undefined): ResourceObject | undefined {
  if (!row) return undefined;
  const { password: _, ...status } = parseJsonObject(row.status);
  return resourceObject({ ...row, status: JSON.stringify(status) });
}

/** One condition of an object, as `status reason`. */
export function conditionOf(status: JsonObject, type: string): string | undefined {
  const conditions = status['conditions'];
  const all = isJsonArray(conditions) ? conditions.filter(isJsonObject) : [];
  const found = all.find((condition) => condition['type'] === type);
  return found && `${textOf(found, 'status')} ${textOf(found, 'reason')}`;
}

function textOf(object: JsonObject, field: string): string {
  const value = object[field];
  return typeof value === 'string' ? value : '';
}

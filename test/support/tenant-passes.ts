/** Passes of the objects of a tenant, one by one, on a real store. */

import { isJsonArray, isJsonObject, parseJsonObject, type JsonObject } from '#core/json.ts';
import type { Kind } from '#core/kind.ts';
import type { ResourceObject } from '#core/resource.ts';
import { createMapper } from '#functions/reconcile/map-changes.ts';
import {
  controllerOf,
  createOnePass,
  LEASE_MS,
  type OnePassOptions,
  parked,
  type PassDone,
} from '#test/support/one-pass.ts';
import { createTenants } from '#test/support/prepared-database.ts';
import { prepareReconciling } from '#test/support/reconciling.ts';

export interface TenantPasses {
  readonly tenant: string;
  readonly tenantUid: string;
  readonly installation: string;
  /** Creates an object, or replaces its spec. */
  put(kind: Kind, name: string, spec: JsonObject): Promise<void>;
  annotate(kind: Kind, name: string, annotations: Readonly<Record<string, string>>): Promise<void>;
  /** Requests its deletion. */
  remove(kind: Kind, name: string): Promise<void>;
  /** Without secrets; undefined when there is none any more. */
  read(kind: Kind, name: string): Promise<ResourceObject | undefined>;
  /** Its status with the secrets. */
  status(kind: Kind, name: string): Promise<JsonObject>;
  /** One field of its status, secrets too; empty when it is no text. */
  text(kind: Kind, name: string, field: string): Promise<string>;
  /** One condition, as `status reason`. */
  condition(kind: Kind, name: string, type: string): Promise<string | undefined>;
  /** One pass, whether it is due or not. @throws {Error} when another pass holds the object. */
  pass(kind: Kind, name: string, options?: OnePassOptions): Promise<PassDone>;
  /** What runs has lost its lease, and does not know it yet: as if its process were frozen. */
  expireLeases(): Promise<void>;
  /** Passes until none is asked for at once, or one fails. */
  settle(kind: Kind, name: string): Promise<PassDone>;
  /** Names of the objects of a kind that what has changed in watched kinds since the last call makes due. */
  woken(kind: Kind): Promise<readonly string[]>;
}

export interface PassStore {
  /** A new tenant of this name. */
  newTenant(tenant: string): Promise<TenantPasses>;
  close(): Promise<void>;
}

/**
 * A database with these kinds, of one controller each.
 * @param installation in all markers: the tests' databases are copies of one, which has its own.
 */
export async function openPassStore(kinds: readonly Kind[], installation: string): Promise<PassStore> {
  const store = await prepareReconciling(kinds);
  const { sql } = store;
  await sql`update plumbline.installation set id = ${installation}`;
  const driver = store.driver({ leaseMs: LEASE_MS });
  const onePass = createOnePass(store, driver, installation);
  return { newTenant, close: () => store.close() };

  async function newTenant(tenant: string): Promise<TenantPasses> {
    await createTenants(sql, [tenant]);
    const options = { tenant };
    const self: TenantPasses = {
      tenant,
      tenantUid: await uidOf('system', 'Tenant', tenant),
      installation,
      async put({ kind }, name, spec) {
        const existing = await store.get(kind, name, options);
        const absent = Object.fromEntries(Object.keys(existing?.spec ?? {}).map((field) => [field, null]));
        if (existing) await store.update(kind, name, { ...absent, ...spec }, options);
        else await store.create(kind, name, spec, options);
      },
      async annotate({ kind }, name, annotations) {
        await store.annotate(kind, name, annotations, options);
      },
      async remove({ kind }, name) {
        await store.delete(kind, name, options);
      },
      read: ({ kind }, name) => store.get(kind, name, options),
      async status({ kind }, name) {
        const uid = await uidOf(tenant, kind, name);
        const [row] = await sql<{ status: string }[]>`
          select status::text as status from plumbline.resource where uid = ${uid}`;
        return parseJsonObject(row?.status ?? '{}');
      },
      text: async (kind, name, field) => textOf(await self.status(kind, name), field),
      async condition(kind, name, type) {
        const { conditions } = await self.status(kind, name);
        const all = isJsonArray(conditions) ? conditions.filter(isJsonObject) : [];
        const found = all.find((condition) => condition['type'] === type);
        return found && `${textOf(found, 'status')} ${textOf(found, 'reason')}`;
      },
      pass: async (kind, name, how) => onePass(kind, await uidOf(tenant, kind.kind, name), how),
      async settle(kind, name) {
        for (;;) {
          const done = await self.pass(kind, name);
          if (done.nextMs > 0 || done.result === 'finalized') return done;
        }
      },
      expireLeases: () => store.expireLeases(),
      woken: (kind) => woken(kind, tenant),
    };
    return self;
  }

  async function woken(kind: Kind, tenant: string): Promise<readonly string[]> {
    const { id } = controllerOf(kind);
    await sql`update plumbline.work_item set ${parked(sql)} where controller = ${id}`;
    const errors: unknown[] = [];
    await createMapper({ ...driver, onError: (error) => errors.push(error) }).look();
    await sql`select plumbline.apply_touches()`;
    if (errors.length > 0) throw errors[0];
    const due = await sql<{ name: string }[]>`
      select r.name from plumbline.work_item w join plumbline.resource r on r.uid = w.uid
      where w.controller = ${id} and r.tenant = ${tenant} and w.due_at <= clock_timestamp() order by 1`;
    return due.map(({ name }) => name);
  }

  async function uidOf(tenant: string, kind: string, name: string): Promise<string> {
    const [row] = await sql<{ uid: string }[]>`
      select uid from plumbline.resource where (tenant, kind, name) = (${tenant}, ${kind}, ${name})`;
    if (!row) throw new Error(`there is no ${kind} "${name}"`);
    return row.uid;
  }
}

function textOf(object: JsonObject, field: string): string {
  const value = object[field];
  return typeof value === 'string' ? value : '';
}

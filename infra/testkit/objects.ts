/** Objects as users write them: through the store, by the rules of their kind. */

import type { Sql } from '#adapters/postgres/client.ts';
import { postgresResources } from '#adapters/postgres/resources.ts';
import { type JsonObject, parseJson, parseJsonObject } from '#core/json.ts';
import { apiVersionOf, type Kind } from '#core/kind.ts';
import { mergePatch } from '#core/merge-patch.ts';
import type { DesiredState } from '#core/ports/resources.ts';
import { resourceObject } from '#core/resource-json.ts';
import type { OwnerReference, ResourceKey, ResourceObject, ResourceRow } from '#core/resource.ts';
import { validateDocument } from '#core/schema-causes.ts';
import { SYSTEM_TENANT } from '#core/identity.ts';

export interface ObjectOptions {
  /** @default the first of the kit's tenants */
  readonly tenant?: string;
}

export interface CreateOptions extends ObjectOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface KitObjects {
  /** @throws {TypeError} for a spec that the kind's schema refuses; {StatusError} as the API answers. */
  create(kind: string, name: string, spec?: object, options?: CreateOptions): Promise<ResourceObject>;
  /** Changes the spec by a JSON merge patch: null removes a field. */
  update(kind: string, name: string, patch: object, options?: ObjectOptions): Promise<ResourceObject>;
  /** Sets annotations; null removes one. */
  annotate(
    kind: string,
    name: string,
    annotations: Readonly<Record<string, string | null>>,
    options?: ObjectOptions,
  ): Promise<ResourceObject>;
  /** Requests the deletion. @returns whether it is gone at once. */
  delete(kind: string, name: string, options?: ObjectOptions): Promise<boolean>;
  /** As it is now, without secrets; undefined when there is none. */
  get(kind: string, name: string, options?: ObjectOptions): Promise<ResourceObject | undefined>;
}

const EVERYTHING = { tenants: '*' } as const;

export function kitObjects(sql: Sql, kinds: readonly Kind[], firstTenant: string): KitObjects {
  const store = postgresResources(sql);
  return {
    async create(kindName, name, spec = {}, options = {}) {
      const kind = find(kindName);
      const row = await store.create(EVERYTHING, {
        ...keyOf(kind, name, options),
        finalizers: [],
        labels: JSON.stringify(options.labels ?? {}),
        annotations: JSON.stringify(options.annotations ?? {}),
        ownerReferences: JSON.stringify(options.ownerReferences ?? []),
        spec: validated(kind, name, spec as JsonObject),
      });
      return resourceObject(row);
    },
    async update(kindName, name, patch, options = {}) {
      const kind = find(kindName);
      return write(kind, name, options, (row) => {
        const spec = mergePatch(parseJson(row.spec), patch as JsonObject) as JsonObject;
        return { spec: validated(kind, name, spec) };
      });
    },
    async annotate(kindName, name, annotations, options = {}) {
      return write(find(kindName), name, options, (row) => ({
        annotations: JSON.stringify(mergePatch(parseJson(row.annotations), annotations)),
      }));
    },
    async delete(kindName, name, options = {}) {
      const { gone } = await store.delete(EVERYTHING, keyOf(find(kindName), name, options), {});
      return gone;
    },
    async get(kindName, name, options = {}) {
      const row = await store.get(EVERYTHING, keyOf(find(kindName), name, options));
      return row && resourceObject(row);
    },
  };

  async function write(
    kind: Kind,
    name: string,
    options: ObjectOptions,
    change: (row: ResourceRow) => Partial<DesiredState>,
  ): Promise<ResourceObject> {
    const key = keyOf(kind, name, options);
    const row = await store.getForUpdate(EVERYTHING, key);
    if (!row) throw new Error(`there is no ${kind.kind} "${name}" in tenant "${key.tenant}"; create it first`);
    const { finalizers, labels, annotations, ownerReferences, spec } = row;
    const state: DesiredState = { finalizers, labels, annotations, ownerReferences, spec, ...change(row) };
    return resourceObject(await store.update(EVERYTHING, key, state, { uid: row.uid }));
  }

  function keyOf(kind: Kind, name: string, { tenant = firstTenant }: ObjectOptions): ResourceKey {
    const owner = kind.scope === 'Cluster' ? SYSTEM_TENANT : tenant;
    return { tenant: owner, group: kind.group, kind: kind.kind, name };
  }

  function find(name: string): Kind {
    const found = kinds.filter(({ kind, group }) => kind === name || `${group}/${kind}` === name);
    const [kind] = found;
    if (kind && found.length === 1) return kind;
    const known = kinds.map((each) => `${each.group}/${each.kind}`).join(', ');
    throw new TypeError(`the kind "${name}" is ${kind ? 'several' : 'none'} of the test kit's; it has ${known}`);
  }
}

function validated(kind: Kind, name: string, spec: JsonObject): string {
  const { document, causes } = validateDocument('spec', parseJsonObject(JSON.stringify(spec)), kind.spec, kind.redact);
  if (document) return JSON.stringify(document);
  const said = causes.map(({ field, message }) => `${field}: ${message}`).join('; ');
  throw new TypeError(`${apiVersionOf(kind)} ${kind.kind} "${name}" is invalid: ${said}`);
}

/** What passes read and write besides their own object; see sql/0013_child.sql. */

import { guarded, type Sql } from '#adapters/postgres/client.ts';
import { shownColumns } from '#adapters/postgres/resource-columns.ts';
import type { ClaimedPass, PassObjects } from '#core/ports/work-queue.ts';
import type { KindName } from '#core/reconcile/controller.ts';
import { resourceObject } from '#core/resource-json.ts';
import type { ResourceObject, ResourceRow } from '#core/resource.ts';

const PAGE = 500;

type Child = Parameters<PassObjects['applyChild']>[1];
type Applied = Awaited<ReturnType<PassObjects['applyChild']>>;

export function postgresPassObjects(sql: Sql): PassObjects {
  return {
    async get(tenant: string, kind: KindName, name: string): Promise<ResourceObject | undefined> {
      const [row] = await guarded(
        `${kind.kind} "${name}"`,
        () => sql<ResourceRow[]>`
        select ${shownColumns(sql)} from plumbline.resource r
        join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
        where r.api_group = ${kind.group} and r.kind = ${kind.kind} and r.name = ${name}
          and r.tenant = case k.scope when 'Cluster' then 'system' else ${tenant}::text end`,
      );
      return row && resourceObject(row);
    },

    async list(tenant: string, kind: KindName): Promise<readonly ResourceObject[]> {
      const all: ResourceObject[] = [];
      for (let after = ''; ;) {
        const rows = await guarded(
          kind.kind,
          () => sql<ResourceRow[]>`
          select ${shownColumns(sql)} from plumbline.resource r
          join plumbline.kind k on k.api_group = r.api_group and k.kind = r.kind
          where r.api_group = ${kind.group} and r.kind = ${kind.kind} and r.name > ${after}
            and r.tenant = case k.scope when 'Cluster' then 'system' else ${tenant}::text end
          order by r.name limit ${PAGE}`,
        );
        all.push(...rows.map(resourceObject));
        const last = rows.at(-1);
        if (rows.length < PAGE || last === undefined) return all;
        after = last.name;
      }
    },

    async applyChild({ row, controller, fencingToken }: ClaimedPass, child: Child): Promise<Applied> {
      const { kind, name } = child;
      const [answer] = await guarded(
        `${kind.kind} "${name}"`,
        () => sql<{ outcome: Applied }[]>`
        select plumbline.apply_child(${row.uid}, ${controller}, ${String(fencingToken)}::bigint, ${kind.group},
          ${kind.kind}, ${name}, ${JSON.stringify(child.labels)}::text::jsonb, ${JSON.stringify(child.spec)}::text::jsonb)
          as outcome`,
      );
      return answer?.outcome ?? 'fenced';
    },

    async removeChild({ row, controller, fencingToken }: ClaimedPass, kind: KindName, name: string): Promise<boolean> {
      const [answer] = await guarded(
        `${kind.kind} "${name}"`,
        () => sql<{ isHeld: boolean }[]>`
        select plumbline.remove_child(${row.uid}, ${controller}, ${String(fencingToken)}::bigint, ${kind.group},
          ${kind.kind}, ${name}) as "isHeld"`,
      );
      return answer?.isHeld ?? false;
    },
  };
}

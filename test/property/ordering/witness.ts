/**
 * An independent witness of what was committed: a table with triggers of the test's own, that shares nothing with the
 * capture. Its ids are drawn under the row's lock, so they have each object's changes in order.
 */

import type { Sql } from '#adapters/postgres/client.ts';
import type { Change, ChangeType } from '#test/property/ordering-checker.ts';

/** When transactions were begun and acknowledged, by the one clock of this process: it ticks at each acknowledgement. */
export interface Ledger {
  begin(): Transaction;
  /** Its commit was answered. */
  acknowledge(transaction: Transaction): void;
  /** The same for a write that was one call, found again by the version that it made. */
  acknowledgeVersion(transaction: Transaction, resourceVersion: string): void;
  of(id: bigint | null, resourceVersion: bigint | null): Change['transaction'];
}

export interface Transaction {
  readonly id: number;
  readonly begun: number;
}

const INSTALL = `
  create schema witness;
  create table witness.change (
    id bigint generated always as identity (cache 1) primary key,
    transaction bigint, tenant text not null, uid uuid not null, type text not null, resource_version bigint
  );
  create table witness.elsewhere (id integer);
  create function witness.note() returns trigger language plpgsql security definer set search_path = '' as $$
  begin
    if tg_op = 'DELETE' and old.deletion_timestamp is not null and old.finalizers = '{}' then
      return null; -- Noted at the update that took its last finalizer.
    end if;
    insert into witness.change (transaction, tenant, uid, type, resource_version)
      select nullif(current_setting('witness.transaction', true), '')::bigint,
        coalesce(new.tenant, old.tenant), coalesce(new.uid, old.uid),
        case when tg_op = 'INSERT' then 'ADDED'
          when tg_op = 'DELETE' or (new.deletion_timestamp is not null and new.finalizers = '{}') then 'DELETED'
          else 'MODIFIED' end,
        new.resource_version;
    return null;
  end $$;
  create trigger witness after insert or update or delete on plumbline.resource
    for each row execute function witness.note();
`;

export async function installWitness(sql: Sql): Promise<void> {
  await sql.unsafe(INSTALL);
}

/** All that was committed, each object's changes in their order. */
export async function readHistory(sql: Sql, ledger: Ledger): Promise<readonly Change[]> {
  const rows = await sql<
    { transaction: bigint | null; tenant: string; uid: string; type: ChangeType; version: bigint | null }[]
  >`select transaction, tenant, uid, type, resource_version as version from witness.change order by id`;
  return rows.map(({ transaction, tenant, uid, type, version }) => {
    const times = ledger.of(transaction, version);
    return {
      tenant,
      uid,
      type,
      ...(version !== null && { resourceVersion: version }),
      ...(times && { transaction: times }),
    };
  });
}

export function createLedger(): Ledger {
  let now = 0;
  let lastId = 0;
  const byId = new Map<bigint, { begun: number; acknowledged: number }>();
  const byVersion = new Map<bigint, { begun: number; acknowledged: number }>();
  return {
    begin: () => ({ id: ++lastId, begun: now }),
    acknowledge: ({ id, begun }) => void byId.set(BigInt(id), { begun, acknowledged: ++now }),
    acknowledgeVersion: ({ begun }, version) => void byVersion.set(BigInt(version), { begun, acknowledged: ++now }),
    of: (id, version) =>
      (id === null ? undefined : byId.get(id)) ?? (version === null ? undefined : byVersion.get(version)),
  };
}

-- How many objects of a kind a tenant may have. Counted here, so that raw SQL is held to it too, and exactly: however many
-- create at once, none gets one above the limit. Updates count nothing, and deletions are never refused.
-- A count is the sum of several rows. Who creates or deletes adds to one that nobody else has open, or makes one more:
-- nobody waits for a transaction that stays open, and there are as many rows as there were transactions at once.
-- Compared with the limit is a transaction that ends, under a lock that it holds for its commit alone. Far below the limit
-- that lock is shared: as many as there can be sessions may add one each without being seen.
-- Locks: the advisory one of the tenant and kind. Transactions that reach the limits of several kinds at once, in different
-- order, can meet in a deadlock, which ends one of them.

create table plumbline.object_count (
  id bigint generated always as identity primary key,
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  kind text collate "C" not null,
  -- Below zero where more was deleted by way of this row than created.
  used bigint not null,
  -- Who wrote it last, and what it was before.
  txid xid8 not null default pg_current_xact_id(),
  used_before bigint not null default 0
) with (fillfactor = 50);

create index object_count_of on plumbline.object_count (tenant, api_group, kind);

-- What holds for tenants whose object says nothing. Null: no limit. Servers write their configuration here.
create table plumbline.quota_default (
  only_row boolean primary key default true check (only_row),
  objects bigint check (objects >= 0)
);
insert into plumbline.quota_default default values;

grant select on plumbline.object_count, plumbline.quota_default to plumbline_server;
alter table plumbline.object_count enable row level security;
create policy machinery on plumbline.object_count to plumbline_worker using (true) with check (true);
create policy of_tenant on plumbline.object_count to plumbline_server using (
  tenant = any ((select plumbline.seen_tenants())::text[]) or tenant <> all ((select plumbline.unseen_tenants())::text[]));

-- Objects of each kind that a tenant may have: what its own object says in spec.quota.objects, or the default. Null: any.
-- Cluster-scoped objects belong to those who run the installation. Who calls it must see the Tenant object.
create function plumbline.object_limit(p_tenant text) returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when p_tenant <> 'system' then coalesce(
    (select case when jsonb_typeof(r.spec #> '{quota,objects}') = 'number' then (r.spec #> '{quota,objects}')::numeric::bigint end
      from plumbline.resource r
      where r.api_group = 'plumbline.dev' and r.kind = 'Tenant' and r.tenant = 'system' and r.name = p_tenant),
    (select d.objects from plumbline.quota_default d)) end
$$;

create function plumbline.objects_used(p_tenant text, p_group text, p_kind text) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum(c.used), 0)::bigint from plumbline.object_count c
    where c.tenant = p_tenant and c.api_group = p_group and c.kind = p_kind
$$;

-- Below zero for deletions.
create function plumbline.add_to_count(p_tenant text, p_group text, p_kind text, p_n bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update plumbline.object_count c set used = c.used + p_n, txid = pg_current_xact_id(),
      used_before = case when c.txid = pg_current_xact_id() then c.used_before else c.used end
    from (
      select f.id from plumbline.object_count f
      where f.tenant = p_tenant and f.api_group = p_group and f.kind = p_kind
      order by f.id for no key update skip locked limit 1
    ) free where c.id = free.id;
  if not found then
    insert into plumbline.object_count (tenant, api_group, kind, used) values (p_tenant, p_group, p_kind, p_n);
  end if;
end
$$;

create function plumbline.count_objects() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  changed record;
begin
  if tg_op = 'INSERT' then
    for changed in select n.tenant, n.api_group, n.kind, count(*) as n from new_rows n group by 1, 2, 3 order by 1, 2, 3 loop
      perform plumbline.add_to_count(changed.tenant, changed.api_group, changed.kind, changed.n);
    end loop;
    return null;
  end if;
  for changed in select o.tenant, o.api_group, o.kind, count(*) as n from old_rows o group by 1, 2, 3 order by 1, 2, 3 loop
    perform plumbline.add_to_count(changed.tenant, changed.api_group, changed.kind, -changed.n);
  end loop;
  -- A tenant goes when nothing is left in it.
  delete from plumbline.object_count c using old_rows o
    where o.api_group = 'plumbline.dev' and o.kind = 'Tenant' and c.tenant = o.name;
  return null;
end
$$;

create trigger zzz_count_insert after insert on plumbline.resource
  referencing new table as new_rows for each statement execute function plumbline.count_objects();
create trigger zzz_count_delete after delete on plumbline.resource
  referencing old table as old_rows for each statement execute function plumbline.count_objects();

-- At the end of a transaction, for the last change of each row that it has counted in: refuses what it has added beyond the limit.
create function plumbline.check_quota() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  -- What sessions at their end may add, one each, while nobody sees it.
  unseen constant bigint := current_setting('max_connections')::bigint;
  lock_key constant bigint := hashtextextended(format('plumbline/quota/%s/%s/%s', new.tenant, new.api_group, new.kind), 0);
  added constant bigint := (select sum(c.used - c.used_before) from plumbline.object_count c
    where c.tenant = new.tenant and c.api_group = new.api_group and c.kind = new.kind and c.txid = pg_current_xact_id());
  most bigint;
  used bigint;
begin
  if coalesce(added, 0) <= 0
    -- Counted on since: that is looked at for itself.
    or new.used <> (select c.used from plumbline.object_count c where c.id = new.id) then
    return null;
  end if;
  most := plumbline.object_limit(new.tenant);
  if most is null then
    return null;
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'objects of tenant "%" have a limit, and can be created at READ COMMITTED only', new.tenant
      using errcode = '0A000',
        hint = 'Another isolation level does not see what others have created meanwhile. Create them in a transaction of its own.';
  end if;
  -- Twice what can be unseen: who has the shared lock and then needs the other could wait for who waits for it.
  if added = 1 and plumbline.objects_used(new.tenant, new.api_group, new.kind) + 2 * unseen <= most then
    perform pg_advisory_xact_lock_shared(lock_key);
    if plumbline.objects_used(new.tenant, new.api_group, new.kind) + unseen <= most then
      return null;
    end if;
  end if;
  perform pg_advisory_xact_lock(lock_key);
  used := plumbline.objects_used(new.tenant, new.api_group, new.kind);
  if used > most then
    raise exception '%', format('exceeded quota: objects, requested: %1$s=%2$s, used: %1$s=%3$s, limited: %1$s=%4$s',
      (select 'count/' || k.plural || '.' || k.api_group from plumbline.kind k
        where k.api_group = new.api_group and k.kind = new.kind),
      added, used - added, most) using errcode = 'PL403',
      hint = format('Delete what tenant "%s" does not need, or raise spec.quota.objects of its Tenant object.', new.tenant);
  end if;
  return null;
end
$$;

-- Not only for the first change of a row: whoever sets constraints to be checked at once may go on after that.
create constraint trigger check_quota_of_new after insert on plumbline.object_count
  deferrable initially deferred for each row execute function plumbline.check_quota();
create constraint trigger check_quota after update on plumbline.object_count
  deferrable initially deferred for each row execute function plumbline.check_quota();

insert into plumbline.object_count (tenant, api_group, kind, used, used_before)
  select r.tenant, r.api_group, r.kind, count(*), count(*) from plumbline.resource r group by 1, 2, 3;

grant execute on function plumbline.object_limit to plumbline_server;

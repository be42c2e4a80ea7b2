-- How many objects of a kind a tenant may have. Counted here, so that raw SQL is held to it too, and exactly: however many
-- create at once, none gets one above the limit. Updates count nothing: neither the request of a deletion nor the removal
-- of a finalizer is ever refused.
-- A count is the sum of several rows, its parts. Who creates adds to one of them, so that creations wait for few others'
-- commits, all of the same tenant and kind: with a single row 8 clients made 1,200 objects/s where they made 4,300 uncounted.
-- Near the limit that is not enough: what others have added and not committed is not visible. Each part has one writer at
-- a time, and a transaction adds few_objects() to one at most; so that much for each other part is kept free. Beyond it all
-- parts are locked, in their order, and the sum is exact.
-- Locks: table resource for as long as counting what is there takes.

create table plumbline.object_count (
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  kind text collate "C" not null,
  part smallint not null,
  -- Below zero where more was deleted by way of this part than created.
  used bigint not null default 0,
  -- What it was before the transaction that wrote it last.
  txid xid8 not null default pg_current_xact_id(),
  used_before bigint not null default 0,
  primary key (tenant, api_group, kind, part)
) with (fillfactor = 50);

create function plumbline.count_parts() returns smallint language sql immutable return 16::smallint;
create function plumbline.few_objects() returns bigint language sql immutable return 100::bigint;

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
-- Cluster-scoped objects belong to those who run the installation.
create function plumbline.object_limit(p_tenant text) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when p_tenant <> 'system' then coalesce(
    (select case when jsonb_typeof(r.spec #> '{quota,objects}') = 'number' then (r.spec #> '{quota,objects}')::numeric::bigint end
      from plumbline.resource r
      where r.api_group = 'plumbline.dev' and r.kind = 'Tenant' and r.tenant = 'system' and r.name = p_tenant),
    (select d.objects from plumbline.quota_default d)) end
$$;

-- What can be added elsewhere while nobody sees it.
create function plumbline.unseen_objects() returns bigint language sql immutable
return (plumbline.count_parts() - 1) * plumbline.few_objects();

create function plumbline.objects_used(p_tenant text, p_group text, p_kind text) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum(c.used), 0)::bigint from plumbline.object_count c
    where c.tenant = p_tenant and c.api_group = p_group and c.kind = p_kind
$$;

-- Makes all parts at once: who locks all must find them. Waits for who makes them at the same time.
create function plumbline.open_count(p_tenant text, p_group text, p_kind text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into plumbline.object_count (tenant, api_group, kind, part)
    select p_tenant, p_group, p_kind, n from generate_series(0, plumbline.count_parts() - 1) n on conflict do nothing
$$;

-- Adds to the part of this session; below zero for deletions. Returns what this transaction has added to it.
create function plumbline.add_to_count(p_tenant text, p_group text, p_kind text, p_n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  added bigint;
begin
  loop
    update plumbline.object_count c set used = c.used + p_n, txid = pg_current_xact_id(),
        used_before = case when c.txid = pg_current_xact_id() then c.used_before else c.used end
      where c.tenant = p_tenant and c.api_group = p_group and c.kind = p_kind
        and c.part = pg_backend_pid() % plumbline.count_parts()
      returning c.used - c.used_before into added;
    exit when found;
    perform plumbline.open_count(p_tenant, p_group, p_kind);
  end loop;
  return added;
end
$$;

-- Nobody adds anything meanwhile, until this transaction ends.
create function plumbline.lock_count(p_tenant text, p_group text, p_kind text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  loop
    perform from plumbline.object_count c where c.tenant = p_tenant and c.api_group = p_group and c.kind = p_kind
      order by c.part for no key update;
    exit when found;
    perform plumbline.open_count(p_tenant, p_group, p_kind);
  end loop;
end
$$;

create function plumbline.count_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  made record;
  most bigint;
  used bigint;
  added bigint;
  -- An older snapshot does not tell what others have added since. Under all locks that is a failure to serialize.
  is_current constant boolean := current_setting('transaction_isolation') = 'read committed';
begin
  -- In one order everywhere: who counts several kinds waits for nobody who waits for it.
  for made in select n.tenant, n.api_group, n.kind, count(*) as n from new_rows n group by 1, 2, 3 order by 1, 2, 3 loop
    most := plumbline.object_limit(made.tenant);
    used := plumbline.objects_used(made.tenant, made.api_group, made.kind);
    -- Twice what is kept free: who finds too little of it only after it has locked its part could wait for who waits for it.
    if most is null or (is_current and made.n <= plumbline.few_objects() and used + 2 * plumbline.unseen_objects() <= most) then
      added := plumbline.add_to_count(made.tenant, made.api_group, made.kind, made.n);
      used := plumbline.objects_used(made.tenant, made.api_group, made.kind);
      continue when most is null or (added <= plumbline.few_objects() and used + plumbline.unseen_objects() <= most);
      perform plumbline.lock_count(made.tenant, made.api_group, made.kind);
    else
      perform plumbline.lock_count(made.tenant, made.api_group, made.kind);
      perform plumbline.add_to_count(made.tenant, made.api_group, made.kind, made.n);
    end if;
    used := plumbline.objects_used(made.tenant, made.api_group, made.kind);
    if used > most then
      raise exception '%', format('exceeded quota: objects, requested: %1$s=%2$s, used: %1$s=%3$s, limited: %1$s=%4$s',
        (select 'count/' || k.plural || '.' || k.api_group from plumbline.kind k
          where k.api_group = made.api_group and k.kind = made.kind),
        made.n, used - made.n, most) using errcode = 'PL403',
        hint = format('Delete what tenant "%s" does not need, or raise spec.quota.objects of its Tenant object.', made.tenant);
    end if;
  end loop;
  return null;
end
$$;

create function plumbline.count_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  gone record;
begin
  for gone in select o.tenant, o.api_group, o.kind, count(*) as n from old_rows o group by 1, 2, 3 order by 1, 2, 3 loop
    perform plumbline.add_to_count(gone.tenant, gone.api_group, gone.kind, -gone.n);
  end loop;
  -- A tenant goes when nothing is left in it.
  delete from plumbline.object_count c using old_rows o
    where o.api_group = 'plumbline.dev' and o.kind = 'Tenant' and c.tenant = o.name;
  return null;
end
$$;

create trigger zzz_count_insert after insert on plumbline.resource
  referencing new table as new_rows for each statement execute function plumbline.count_insert();
create trigger zzz_count_delete after delete on plumbline.resource
  referencing old table as old_rows for each statement execute function plumbline.count_delete();

insert into plumbline.object_count (tenant, api_group, kind, part, used, used_before)
  select r.tenant, r.api_group, r.kind, part, case part when 0 then r.n else 0 end, case part when 0 then r.n else 0 end
  from (select tenant, api_group, kind, count(*) as n from plumbline.resource group by 1, 2, 3) r
  cross join generate_series(0, plumbline.count_parts() - 1) part;

grant execute on function plumbline.object_limit to plumbline_server;

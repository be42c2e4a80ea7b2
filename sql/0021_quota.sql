-- How many objects of a kind a tenant may have. Counted here, so that raw SQL is held to it too. A count is a row of its
-- own for each tenant and kind: creations and removals of one kind in one tenant wait for each other's commit, and for
-- nobody else's. So of many that create at once none gets one above the limit. Updates count nothing: neither the
-- request of a deletion nor the removal of a finalizer is ever refused.
-- Locks: table resource for as long as counting what is there takes.

create table plumbline.object_count (
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  kind text collate "C" not null,
  used bigint not null check (used >= 0),
  primary key (tenant, api_group, kind)
) with (fillfactor = 50);

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

create function plumbline.count_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  counted record;
begin
  for counted in
    with added as (
      -- In one order everywhere: who counts several kinds waits for nobody who waits for it.
      select n.tenant, n.api_group, n.kind, count(*) as n from new_rows n group by 1, 2, 3 order by 1, 2, 3
    )
    insert into plumbline.object_count as c (tenant, api_group, kind, used) select * from added
      on conflict (tenant, api_group, kind) do update set used = c.used + excluded.used
      returning c.tenant, c.api_group, c.kind, c.used,
        (select a.n from added a where (a.tenant, a.api_group, a.kind) = (c.tenant, c.api_group, c.kind)) as n,
        plumbline.object_limit(c.tenant) as most
  loop
    if counted.used > counted.most then
      raise exception '%', format('exceeded quota: objects, requested: %1$s=%2$s, used: %1$s=%3$s, limited: %1$s=%4$s',
        (select 'count/' || k.plural || '.' || k.api_group from plumbline.kind k
          where k.api_group = counted.api_group and k.kind = counted.kind),
        counted.n, counted.used - counted.n, counted.most) using errcode = 'PL403',
        hint = format('Delete what tenant "%s" does not need, or raise spec.quota.objects of its Tenant object.', counted.tenant);
    end if;
  end loop;
  return null;
end
$$;

create function plumbline.count_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
  perform from plumbline.object_count c
    where (c.tenant, c.api_group, c.kind) in (select o.tenant, o.api_group, o.kind from old_rows o)
    order by c.tenant, c.api_group, c.kind for no key update;
  update plumbline.object_count c set used = c.used - gone.n from (
    select o.tenant, o.api_group, o.kind, count(*) as n from old_rows o group by 1, 2, 3
  ) gone where (c.tenant, c.api_group, c.kind) = (gone.tenant, gone.api_group, gone.kind);
  delete from plumbline.object_count c using old_rows o
    where o.api_group = 'plumbline.dev' and o.kind = 'Tenant' and c.tenant = o.name and c.used = 0;
  return null;
end
$$;

create trigger zzz_count_insert after insert on plumbline.resource
  referencing new table as new_rows for each statement execute function plumbline.count_insert();
create trigger zzz_count_delete after delete on plumbline.resource
  referencing old table as old_rows for each statement execute function plumbline.count_delete();

insert into plumbline.object_count (tenant, api_group, kind, used)
  select tenant, api_group, kind, count(*) from plumbline.resource group by 1, 2, 3;

grant execute on function plumbline.object_limit to plumbline_server;

-- The tenant that everybody may read, the tenants that stay, and who may write what of a status.
do $$
begin
  if exists (select from plumbline.stream where tenant = 'shared' and closed_at is null) then
    raise exception 'there is a tenant "shared" already: from this version on, everybody may read what is in a tenant of that name'
      using hint = 'With the program before this one, make its objects anew in another tenant, delete it, and migrate again.';
  end if;
end
$$;

-- The tenant "shared" is in every installation from the moment that Tenants are known.
create function plumbline.ensure_shared_tenant() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (
    select from plumbline.resource
    where api_group = 'plumbline.dev' and kind = 'Tenant' and tenant = 'system' and name = 'shared') then
    insert into plumbline.resource (tenant, api_group, kind, name, spec)
      values ('system', 'plumbline.dev', 'Tenant', 'shared', '{"displayName": "Shared: everybody may read what is here"}')
      on conflict do nothing;
  end if;
  return null;
end
$$;

create trigger shared_tenant after insert or update on plumbline.kind for each row
  when (new.api_group = 'plumbline.dev' and new.kind = 'Tenant')
  execute function plumbline.ensure_shared_tenant();

create function plumbline.refuse_end_of_tenant() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'tenant "%" is built in and cannot be deleted', to_jsonb(old) ->> tg_argv[0]
    using errcode = 'PL403', column = 'metadata.name';
end
$$;

-- Before the other rules, which come by name: no finalizer and no object in it is to blame.
create trigger built_in_delete before delete on plumbline.resource for each row
  when (old.api_group = 'plumbline.dev' and old.kind = 'Tenant' and old.name = 'shared')
  execute function plumbline.refuse_end_of_tenant('name');
create trigger built_in_update before update of deletion_timestamp on plumbline.resource for each row
  when (old.api_group = 'plumbline.dev' and old.kind = 'Tenant' and old.name = 'shared'
    and new.deletion_timestamp is not null)
  execute function plumbline.refuse_end_of_tenant('name');

-- The tenant "system" has no object; its stream, and that of "shared", stay open.
create trigger built_in_delete before delete on plumbline.stream for each row
  when (old.tenant in ('system', 'shared') and old.closed_at is null)
  execute function plumbline.refuse_end_of_tenant('tenant');
create trigger built_in_update before update on plumbline.stream for each row
  when (old.tenant in ('system', 'shared') and old.closed_at is null
    and (new.tenant <> old.tenant or new.closing_at is not null or new.closed_at is not null))
  execute function plumbline.refuse_end_of_tenant('tenant');

-- What somebody other than the driver would change in the status of a kind with controllers: the first part that belongs
-- to one of them, or to the driver itself, and whose it is. Null: nothing.
create function plumbline.foreign_status_part(p_group text, p_kind text, p_old jsonb, p_new jsonb) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select part.name || ' belongs to ' || part.owner
  from (
    select 'controller ' || c.name as owner, 'condition' as what, t as name
      from plumbline.reporter c cross join unnest(c.condition_types) t where c.api_group = p_group and c.kind = p_kind
    union all
    select 'controller ' || c.name, 'field', f
      from plumbline.reporter c cross join unnest(c.status_fields) f where c.api_group = p_group and c.kind = p_kind
    union all
    select 'the driver', 'condition', unnest('{DeletionBlocked,OwnershipConflict,Paused}'::text[])
    union all
    select 'the driver', 'field', unnest('{observedGeneration,resources,lastReconcileNow}'::text[])
  ) share
  cross join lateral (select share.owner, case share.what when 'field' then 'status.' || share.name
    else 'the condition ' || share.name end as name) part
  where case share.what
    when 'field' then p_old -> share.name is distinct from p_new -> share.name
    else jsonb_path_query_array(p_old, '$.conditions[*] ? (@.type == $type)', jsonb_build_object('type', share.name))
      <> jsonb_path_query_array(p_new, '$.conditions[*] ? (@.type == $type)', jsonb_build_object('type', share.name))
    end
  order by part.name limit 1
$$;

-- Refuses an observedGeneration that cannot be true: of a generation that does not exist yet, or older than what was
-- reported, for then another writer knows more. What is no number was never reported.
create function plumbline.assert_observed(p_before jsonb, p_after jsonb, p_generation bigint) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  before constant numeric := case when jsonb_typeof(p_before) = 'number' then p_before::numeric else 0 end;
  after constant numeric :=
    case coalesce(jsonb_typeof(p_after), 'null') when 'number' then p_after::numeric when 'null' then 0 else -1 end;
begin
  if after < 0 or after <> trunc(after) then
    raise exception 'status.observedGeneration must be an integer from 0 on'
      using errcode = 'PL422', column = 'status.observedGeneration', constraint = 'FieldValueInvalid';
  elsif after > p_generation then
    raise exception 'status.observedGeneration is %, above metadata.generation, which is %', after, p_generation
      using errcode = 'PL422', column = 'status.observedGeneration', constraint = 'FieldValueInvalid';
  elsif after < before then
    raise exception 'status.observedGeneration cannot go back from % to %: read the object again', before, after
      using errcode = 'PL409', column = 'status.observedGeneration', constraint = 'FieldValueInvalid';
  end if;
end
$$;

-- Controllers' parts of a status are written by them alone: in functions that check whose pass or report it is, and that
-- say so by the setting plumbline.writer. For a kind without controllers, everything is as free as before.
-- It runs with the rights of the writer and without settings of its own, which would cost every status write another 5 µs;
-- so it costs 5 µs of 56, and writes of anything else nothing. Whoever could trick it by a search_path could as well set
-- plumbline.writer: raw SQL may, what comes over HTTP can do neither.
create function plumbline.guard_status() returns trigger
language plpgsql as $$
declare
  foreign_part text;
begin
  perform from plumbline.reporter c where c.api_group = new.api_group and c.kind = new.kind;
  if found and coalesce(current_setting('plumbline.writer', true), '') = '' then
    foreign_part := plumbline.foreign_status_part(new.api_group, new.kind, old.status, new.status);
  end if;
  if foreign_part is not null then
    raise exception '%, and is written by it alone', foreign_part
      using errcode = 'PL403', column = 'status',
        hint = 'Leave it as it is: a patch that does not name it, or what was read. Conditions and fields of your own can be written beside it.';
  end if;
  if new.status -> 'observedGeneration' is distinct from old.status -> 'observedGeneration' then
    perform plumbline.assert_observed(old.status -> 'observedGeneration', new.status -> 'observedGeneration', new.generation);
  end if;
  return new;
end
$$;

-- Behind rules_update, which ends writes that change nothing.
create trigger status_guard before update of status on plumbline.resource for each row
  when (new.status is distinct from old.status) execute function plumbline.guard_status();

-- The finalizer of a controller that runs comes off by its passes alone: else what was made for the object would stay
-- behind. One whose controller does not run can be taken off, and operators can do anything by SQL of their own.
create function plumbline.guard_finalizers() returns trigger
language plpgsql as $$
declare
  held text;
begin
  if current_user <> 'plumbline_server' then
    return new;
  end if;
  select c.finalizer into held from plumbline.controller c
    where c.api_group = new.api_group and c.kind = new.kind and c.finalizer = any (old.finalizers)
      and not c.finalizer = any (new.finalizers) and plumbline.is_running(c.last_seen_at) limit 1;
  if held is not null then
    raise exception 'the finalizer % is taken off by its controller, which is running, once all is undone', held
      using errcode = 'PL403', column = 'metadata.finalizers',
        hint = 'The condition DeletionBlocked tells what it waits for.';
  end if;
  return new;
end
$$;

create trigger finalizer_guard before update of finalizers on plumbline.resource for each row
  when (new.finalizers is distinct from old.finalizers) execute function plumbline.guard_finalizers();

grant execute on function plumbline.assert_observed, plumbline.foreign_status_part to plumbline_server;

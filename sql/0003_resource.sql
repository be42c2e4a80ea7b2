-- Every object of every kind, and the rules that no writer can bypass: uid, resourceVersion, generation, immutable
-- identity, the one-way deletion, finalizers, no-op writes. Errors use the class PL: PL404, PL409, PL422 are the HTTP
-- code that the API answers; the error's column names the field.
create sequence plumbline.resource_version_seq as bigint cache 1;

create table plumbline.resource (
  uid uuid primary key,
  -- Bytewise order: lists page by it, and it does not depend on the server's locale.
  tenant text collate "C" not null,
  api_group text collate "C" not null,
  version text not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  resource_version bigint not null,
  generation bigint not null,
  creation_timestamp timestamptz not null,
  deletion_timestamp timestamptz,
  finalizers text[] not null default '{}',
  labels jsonb not null default '{}' check (jsonb_typeof(labels) = 'object'),
  annotations jsonb not null default '{}' check (jsonb_typeof(annotations) = 'object'),
  owner_references jsonb not null default '[]' check (jsonb_typeof(owner_references) = 'array'),
  spec jsonb not null default '{}' check (jsonb_typeof(spec) = 'object'),
  status jsonb not null default '{}' check (jsonb_typeof(status) = 'object'),
  foreign key (api_group, kind) references plumbline.kind,
  -- Also the order of lists: one index range scan per page, in a tenant and over all of them.
  constraint resource_name_is_unique unique (api_group, kind, tenant, name)
) with (fillfactor = 80); -- Room for the next version of a row on its own page.

-- Does anything live in this tenant? Asked when a tenant is deleted.
create index resource_tenant on plumbline.resource (tenant);

-- The dependents of an owner: owner_references @> '[{"uid": …}]' and owner_references <> '[]'. Without a list of entries
-- that are yet to be put in, which every look would read to its end.
create index resource_owner on plumbline.resource using gin (owner_references jsonb_path_ops) with (fastupdate = off)
  where owner_references <> '[]';

-- Labels and annotations are texts, or selectors would mean one thing in SQL and another in a watch.
create function plumbline.assert_texts(field text, entries jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if jsonb_path_exists(entries, '$.* ? (@.type() != "string")') then
    raise exception '% has a value that is not a text', field using errcode = 'PL422', column = field;
  end if;
end
$$;

-- Each change of an object that is being deleted compares all with all, and what it waits for names them all.
create function plumbline.assert_few_finalizers(p_finalizers text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if cardinality(p_finalizers) > 200 then
    raise exception 'an object has at most 200 finalizers; got %', cardinality(p_finalizers)
      using errcode = 'PL422', column = 'metadata.finalizers', constraint = 'FieldValueTooMany';
  end if;
end
$$;

-- Null for what cannot be the uid of an object.
create function plumbline.owner_uid(p_reference jsonb) returns uuid
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_reference ->> 'uid' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    then (p_reference ->> 'uid')::uuid end
$$;

-- What an object becomes the dependent of: one controller and 200 owners at most, for each look at it looks at all of them;
-- and nothing that is being deleted, but for children that a pass makes: its finalizing may need helpers, and they go with it.
-- p_before: null for a creation.
create function plumbline.assert_owners(p_tenant text, p_references jsonb, p_before jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  owner record;
  added uuid[];
begin
  if jsonb_array_length(p_references) > 200 then
    raise exception 'an object has at most 200 owners; got %', jsonb_array_length(p_references)
      using errcode = 'PL422', column = 'metadata.ownerReferences', constraint = 'FieldValueTooMany';
  end if;
  if jsonb_array_length(jsonb_path_query_array(p_references, '$[*] ? (@.controller == true)')) > 1 then
    raise exception 'only one owner can have controller set to true'
      using errcode = 'PL422', column = 'metadata.ownerReferences';
  end if;
  if p_before is null and coalesce(current_setting('plumbline.writer', true), '') <> '' then
    return;
  end if;
  added := array(select plumbline.owner_uid(o) from jsonb_array_elements(p_references) o
    where p_before is null or not p_before @> jsonb_build_array(jsonb_build_object('uid', o -> 'uid')));
  -- The lock waits for a deletion that is being requested, and lets none in before this write is done. A creation needs none:
  -- one that is committed after the deletion of its owner is collected as one from before it.
  if p_before is not null then
    perform from plumbline.resource r where r.tenant in (p_tenant, 'system') and r.uid = any (added) order by r.uid for share;
  end if;
  select r.kind, r.name into owner from plumbline.resource r
    where r.tenant in (p_tenant, 'system') and r.uid = any (added) and r.deletion_timestamp is not null
    order by r.uid limit 1;
  if found then
    raise exception '% "%" is being deleted: it can become the owner of nothing', owner.kind, owner.name
      using errcode = 'PL409', column = 'metadata.ownerReferences';
  end if;
end
$$;

-- Finalizers of an object whose deletion is asked for with this policy: Background, Foreground, Orphan. Null: as they are.
create function plumbline.propagation_finalizers(p_finalizers text[], p_policy text) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case p_policy
    when 'Background' then array_remove(array_remove(p_finalizers, 'foregroundDeletion'), 'orphan')
    when 'Foreground' then array_remove(p_finalizers, 'orphan')
      || case when 'foregroundDeletion' = any (p_finalizers) then '{}' else '{foregroundDeletion}'::text[] end
    when 'Orphan' then array_remove(p_finalizers, 'foregroundDeletion')
      || case when 'orphan' = any (p_finalizers) then '{}' else '{orphan}'::text[] end
    else p_finalizers end
$$;

-- Whoever deletes a tenant counts what lives in it. An older snapshot would not see a create that has committed since.
create function plumbline.assert_read_committed(deed text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception '% needs a transaction of isolation level READ COMMITTED', deed using errcode = 'PL409';
  end if;
end
$$;

create function plumbline.resource_before_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  k plumbline.kind;
  s plumbline.stream;
begin
  select * into k from plumbline.kind where api_group = new.api_group and kind = new.kind;
  if not found then
    raise exception 'kind %/% is not registered', new.api_group, new.kind
      using errcode = 'PL404', hint = 'Start a server that defines this kind, or correct api_group and kind.';
  end if;
  if (k.scope = 'Cluster') <> (new.tenant = 'system') then
    raise exception 'kind %/% is %, so its tenant cannot be "%"', k.api_group, k.kind, lower(k.scope), new.tenant
      using errcode = 'PL422', column = 'metadata.namespace',
        hint = 'Cluster-scoped objects belong to the tenant system, and nothing else does.';
  end if;
  -- A share lock on the stream: the tenant's deletion waits for creates in flight, and later creates see it.
  select * into s from plumbline.stream where tenant = new.tenant and closed_at is null for key share;
  if not found then
    raise exception 'tenant "%" does not exist', new.tenant using errcode = 'PL404', column = 'metadata.namespace';
  elsif s.closing_at is not null then
    raise exception 'tenant "%" is being deleted: nothing can be created in it', new.tenant
      using errcode = 'PL409', column = 'metadata.namespace';
  end if;
  -- Here and not as a check of the table, which would be tried at every update: 9 µs each, and names never change.
  if length(new.name) > 253
    or new.name !~ '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$' then
    raise exception 'a name is a DNS subdomain of at most 253 characters; got "%"', new.name
      using errcode = 'PL422', column = 'metadata.name';
  end if;
  if k.api_group = 'plumbline.dev' and k.kind = 'Tenant'
    and (new.name !~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' or new.name = 'system') then
    raise exception 'a tenant''s name must be a DNS label of at most 63 characters and not "system"; got "%"', new.name
      using errcode = 'PL422', column = 'metadata.name';
  end if;
  perform plumbline.assert_texts('metadata.labels', new.labels);
  perform plumbline.assert_texts('metadata.annotations', new.annotations);
  if new.owner_references <> '[]' then
    perform plumbline.assert_owners(new.tenant, new.owner_references, null);
  end if;
  new.uid := gen_random_uuid();
  new.version := k.version;
  new.resource_version := nextval('plumbline.resource_version_seq');
  new.generation := 1;
  new.creation_timestamp := clock_timestamp();
  new.deletion_timestamp := null;
  new.finalizers := array(
    select f from unnest(new.finalizers || k.finalizers) with ordinality u (f, n) group by f order by min(n));
  perform plumbline.assert_few_finalizers(new.finalizers);
  return new;
end
$$;

create trigger rules_insert before insert on plumbline.resource
  for each row execute function plumbline.resource_before_insert();

create function plumbline.resource_before_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  spec_changed constant boolean := new.spec is distinct from old.spec;
  deletion_requested constant boolean := old.deletion_timestamp is null and new.deletion_timestamp is not null;
  -- Whoever asks for a deletion, once more too, may say what becomes of the dependents.
  may_propagate constant boolean := new.deletion_timestamp <> coalesce(old.deletion_timestamp, '-infinity');
begin
  if (new.uid, new.tenant, new.api_group, new.kind, new.name)
    is distinct from (old.uid, old.tenant, old.api_group, old.kind, old.name) then
    raise exception 'uid, tenant, api_group, kind and name of an object never change; delete it and create another'
      using errcode = 'PL422', column = 'metadata';
  end if;
  -- System fields are restored, never trusted.
  new.version := old.version;
  new.creation_timestamp := old.creation_timestamp;
  new.resource_version := old.resource_version;
  new.generation := old.generation;
  if old.deletion_timestamp is not null then
    new.deletion_timestamp := old.deletion_timestamp;
  end if;
  if not spec_changed and not deletion_requested
    and new.status is not distinct from old.status
    and new.labels is not distinct from old.labels
    and new.annotations is not distinct from old.annotations
    and new.finalizers is not distinct from old.finalizers
    and new.owner_references is not distinct from old.owner_references then
    return null; -- A write that changes nothing writes nothing: no version, no event.
  end if;
  if old.deletion_timestamp is not null then
    if spec_changed then
      raise exception 'object is being deleted: its spec can no longer change'
        using errcode = 'PL409', column = 'spec';
    elsif not new.finalizers <@ (
      case when may_propagate then old.finalizers || '{foregroundDeletion,orphan}' else old.finalizers end) then
      raise exception 'no new finalizers can be added if the object is being deleted'
        using errcode = 'PL422', column = 'metadata.finalizers';
    end if;
  elsif spec_changed and exists (
    select from plumbline.stream where tenant = new.tenant and closed_at is null and closing_at is not null) then
    raise exception 'tenant "%" is being deleted: specs in it can no longer change', new.tenant
      using errcode = 'PL409', column = 'spec';
  end if;
  -- The finalizer of a policy always has room: no deletion is refused for it.
  if may_propagate is not true and cardinality(new.finalizers) > cardinality(old.finalizers) then
    perform plumbline.assert_few_finalizers(new.finalizers);
  end if;
  if new.labels is distinct from old.labels then
    perform plumbline.assert_texts('metadata.labels', new.labels);
  end if;
  if new.annotations is distinct from old.annotations then
    perform plumbline.assert_texts('metadata.annotations', new.annotations);
  end if;
  if new.owner_references is distinct from old.owner_references then
    perform plumbline.assert_owners(new.tenant, new.owner_references, old.owner_references);
    if old.deletion_timestamp is not null and exists (
      select from jsonb_array_elements(new.owner_references) o
      where not old.owner_references @> jsonb_build_array(jsonb_build_object('uid', o -> 'uid'))) then
      raise exception 'object is being deleted: nothing can become its owner'
        using errcode = 'PL409', column = 'metadata.ownerReferences';
    end if;
  end if;
  if deletion_requested then
    new.deletion_timestamp := clock_timestamp();
  end if;
  if spec_changed or deletion_requested then
    new.generation := old.generation + 1;
  end if;
  new.resource_version := nextval('plumbline.resource_version_seq');
  return new;
end
$$;

create trigger rules_update before update on plumbline.resource
  for each row execute function plumbline.resource_before_update();

create function plumbline.resource_before_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if old.finalizers <> '{}' then
    raise exception 'object %/% "%" has finalizers %', old.api_group, old.kind, old.name, old.finalizers
      using errcode = 'PL409', column = 'metadata.finalizers',
        hint = 'Request its deletion: update plumbline.resource set deletion_timestamp = now() where …';
  end if;
  if old.api_group = 'plumbline.dev' and old.kind = 'Tenant' then
    perform plumbline.assert_read_committed('deleting a tenant');
    -- Conflicts with the share lock of creates: none is in flight when the count is taken.
    perform from plumbline.stream where tenant = old.name and closed_at is null for update;
    if exists (select from plumbline.resource where tenant = old.name) then
      raise exception 'tenant "%" still has objects; delete them first', old.name
        using errcode = 'PL409', column = 'metadata.name';
    end if;
    update plumbline.stream set closing_at = coalesce(closing_at, clock_timestamp()), closed_at = clock_timestamp()
      where tenant = old.name and closed_at is null;
  end if;
  return old;
end
$$;

create trigger rules_delete before delete on plumbline.resource
  for each row execute function plumbline.resource_before_delete();

-- A tenant's stream is born with the Tenant object and stops taking creates when its deletion is requested.
create function plumbline.tenant_after_write() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    insert into plumbline.stream (tenant) values (new.name);
  else
    perform plumbline.assert_read_committed('deleting a tenant');
    perform from plumbline.stream where tenant = new.name and closed_at is null for update;
    update plumbline.stream set closing_at = new.deletion_timestamp where tenant = new.name and closed_at is null;
  end if;
  return null;
end
$$;

create trigger tenant_insert after insert on plumbline.resource for each row
  when (new.api_group = 'plumbline.dev' and new.kind = 'Tenant')
  execute function plumbline.tenant_after_write();

create trigger tenant_update after update on plumbline.resource for each row
  when (new.api_group = 'plumbline.dev' and new.kind = 'Tenant'
    and old.deletion_timestamp is null and new.deletion_timestamp is not null)
  execute function plumbline.tenant_after_write();

grant select, insert, update, delete on plumbline.resource to plumbline_server;
grant execute on function plumbline.propagation_finalizers, plumbline.owner_uid to plumbline_server;

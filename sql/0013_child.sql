-- What passes write besides their own object: children, and what changes of watched kinds concern.

-- Makes an object that the pass's own object owns, or brings its spec and labels to what is given.
--   created, updated, unchanged
--   deleting    one of that name is on its way out: try again later
--   conflict    one of that name has another owner, or none: it is left alone
--   fenced      the pass has lost its lease
create function plumbline.apply_child(
  p_owner uuid, p_controller text, p_token bigint, p_group text, p_kind text, p_name text, p_labels jsonb, p_spec jsonb
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  owner plumbline.resource;
  child plumbline.resource;
  outcome text := 'unchanged';
begin
  select * into owner from plumbline.resource where uid = p_owner;
  if not found or not plumbline.hold_lease(p_owner, p_token, p_controller, format('apply %s "%s"', p_kind, p_name)) then
    return 'fenced';
  end if;
  perform set_config('plumbline.writer', p_controller, true), set_config('plumbline.writer_uid', p_owner::text, true);
  insert into plumbline.resource (tenant, api_group, kind, name, labels, spec, owner_references)
    values (owner.tenant, p_group, p_kind, p_name, p_labels, p_spec, jsonb_build_array(jsonb_build_object(
      'apiVersion', owner.api_group || '/' || owner.version, 'kind', owner.kind, 'name', owner.name, 'uid', owner.uid,
      'controller', true, 'blockOwnerDeletion', true)))
    on conflict (api_group, kind, tenant, name) do nothing;
  if found then
    outcome := 'created';
  else
    select * into child from plumbline.resource
      where tenant = owner.tenant and api_group = p_group and kind = p_kind and name = p_name for no key update;
    if not found then
      outcome := 'deleting';
    elsif not child.owner_references @> jsonb_build_array(jsonb_build_object('uid', p_owner, 'controller', true)) then
      outcome := 'conflict';
    elsif child.deletion_timestamp is not null then
      outcome := 'deleting';
    elsif child.spec <> p_spec or not child.labels @> p_labels then
      update plumbline.resource set spec = p_spec, labels = labels || p_labels where uid = child.uid;
      outcome := 'updated';
    end if;
  end if;
  perform set_config('plumbline.writer', '', true), set_config('plumbline.writer_uid', '', true);
  return outcome;
end
$$;

-- Requests the deletion of an object that the pass's own object owns; nothing when there is none. False: fenced.
create function plumbline.remove_child(
  p_owner uuid, p_controller text, p_token bigint, p_group text, p_kind text, p_name text
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  child plumbline.resource;
begin
  if not plumbline.hold_lease(p_owner, p_token, p_controller, format('remove %s "%s"', p_kind, p_name)) then
    return false;
  end if;
  select c.* into child from plumbline.resource o join plumbline.resource c
    on c.tenant = o.tenant and c.api_group = p_group and c.kind = p_kind and c.name = p_name
      and c.owner_references @> jsonb_build_array(jsonb_build_object('uid', p_owner, 'controller', true))
    where o.uid = p_owner;
  if found then
    update plumbline.resource set deletion_timestamp = clock_timestamp()
      where uid = child.uid and deletion_timestamp is null and finalizers <> '{}';
    delete from plumbline.resource where uid = child.uid and finalizers = '{}';
  end if;
  return true;
end
$$;

-- What these changes concern has been found out: those objects are due, and the changes are done with.
create function plumbline.finish_watch_changes(p_ids bigint[], p_controllers text[], p_uids uuid[], p_tenants text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from plumbline.watch_change where id = any (p_ids);
  insert into plumbline.touch (controller, uid, tenant, class)
    select t.controller, t.uid, t.tenant, 1 from unnest(p_controllers, p_uids, p_tenants) t (controller, uid, tenant);
  if found then
    perform plumbline.wake_reconcilers();
  end if;
end
$$;

-- Mapping them has failed: they are tried again after a while.
create function plumbline.postpone_watch_changes(p_ids bigint[], p_after interval) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update plumbline.watch_change set due_at = clock_timestamp() + p_after where id = any (p_ids)
$$;

grant execute on function plumbline.postpone_watch_changes, plumbline.apply_child, plumbline.remove_child, plumbline.finish_watch_changes to plumbline_worker;

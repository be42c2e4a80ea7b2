-- External objects that bear our marker and whose owner is gone, since when that is known. They are removed once it has
-- been so for the grace time, and still is. A part is what is looked at by itself, such as one server.
create table plumbline.orphan (
  controller text collate "C" not null references plumbline.controller (name) on delete cascade,
  part text not null,
  class text not null,
  external_id text not null,
  owner_uid uuid not null,
  first_seen_at timestamptz not null default clock_timestamp(),
  primary key (controller, part, class, external_id)
);

grant select on plumbline.orphan to plumbline_worker;

-- Forgets what was known of parts that are not looked at any more.
create function plumbline.keep_orphan_parts(p_controller text, p_parts text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from plumbline.orphan where controller = p_controller and part <> all (p_parts)
$$;

-- Takes a complete list of what bears the marker in a part, and keeps of it what has no owner; returns what has been so
-- for long enough. What is not in the list any more is forgotten.
create function plumbline.note_orphans(
  p_controller text, p_part text, p_classes text[], p_ids text[], p_owners uuid[], p_grace interval
) returns table (class text, external_id text, owner_uid uuid)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  delete from plumbline.orphan o where o.controller = p_controller and o.part = p_part and not exists (
    select from unnest(p_classes, p_ids, p_owners) l (class, id, owner)
    where l.class = o.class and l.id = o.external_id and l.owner = o.owner_uid
      and not exists (select from plumbline.resource r where r.uid = l.owner));
  insert into plumbline.orphan (controller, part, class, external_id, owner_uid)
    select p_controller, p_part, l.class, l.id, l.owner from unnest(p_classes, p_ids, p_owners) l (class, id, owner)
    where not exists (select from plumbline.resource r where r.uid = l.owner)
    on conflict do nothing;
  return query select o.class, o.external_id, o.owner_uid from plumbline.orphan o
    where o.controller = p_controller and o.part = p_part and o.first_seen_at <= clock_timestamp() - p_grace;
end
$$;

-- Whether it still has no owner: asked just before it is removed.
create function plumbline.is_orphan(p_controller text, p_part text, p_class text, p_id text) returns boolean
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from plumbline.orphan o where o.controller = p_controller and o.part = p_part
    and o.class = p_class and o.external_id = p_id
    and not exists (select from plumbline.resource r where r.uid = o.owner_uid))
$$;

create function plumbline.forget_orphan(p_controller text, p_part text, p_class text, p_id text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from plumbline.orphan
    where controller = p_controller and part = p_part and class = p_class and external_id = p_id
$$;

grant execute on function plumbline.keep_orphan_parts, plumbline.note_orphans, plumbline.is_orphan, plumbline.forget_orphan
  to plumbline_worker;

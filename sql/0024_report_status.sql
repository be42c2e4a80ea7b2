-- Reports of controllers that run elsewhere, over HTTP: held to what passes are held to. Each writes its own condition types
-- and fields, says what generation it has seen, and is fenced by the token of its lease.
-- Locks: the object's, which its caller has.

-- Puts what one controller reports into the status of an object that the caller has locked: its own parts as they are
-- given; of others, what is left out stays, and what differs is refused. A token below the highest one that came, or none
-- after one, is that of a holder that was replaced: nothing is written, and it is noted.
create function plumbline.report_status(t plumbline.resource, p_controller text, p_token bigint, p_status jsonb)
returns table (is_fenced boolean, object plumbline.resource)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c plumbline.controller_elsewhere;
  known plumbline.report_elsewhere;
  observed bigint;
  said constant jsonb := p_status -> 'observedGeneration';
  conditions constant jsonb := coalesce(p_status -> 'conditions', '[]');
  stored constant jsonb :=
    case when jsonb_typeof(t.status -> 'conditions') = 'array' then t.status -> 'conditions' else '[]' end;
  report jsonb;
  merged jsonb;
begin
  -- The row is given by the caller, which may have made it.
  if not exists (select from plumbline.resource where uid = t.uid and plumbline.sees_tenant(tenant)) then
    return;
  end if;
  select * into strict c from plumbline.controller_elsewhere
    where name = p_controller and api_group = t.api_group and kind = t.kind;
  select * into known from plumbline.report_elsewhere where uid = t.uid and controller = p_controller;
  if coalesce(p_token, 0) < known.fencing_token then
    insert into plumbline.fenced_write (uid, controller, fencing_token, deed)
      values (t.uid, p_controller, coalesce(p_token, 0), 'report');
    is_fenced := true;
    return next;
    return;
  end if;
  if jsonb_typeof(conditions) <> 'array' or exists (
    select from jsonb_array_elements(conditions) e where jsonb_typeof(e -> 'type') is distinct from 'string') or (
    select count(*) <> count(distinct e ->> 'type') from jsonb_array_elements(conditions) e) then
    raise exception 'status.conditions must be a list of objects, each with a type of its own'
      using errcode = 'PL422', column = 'status.conditions', constraint = 'FieldValueInvalid';
  end if;
  report := jsonb_build_object(
    'conditions', (select coalesce(jsonb_agg(e), '[]') from jsonb_array_elements(conditions) e
      where not exists (select from jsonb_array_elements(stored) s where s = e)),
    'removedConditions', (select coalesce(jsonb_agg(s -> 'type'), '[]') from jsonb_array_elements(stored) s
      where s ->> 'type' = any (c.condition_types)
        and not exists (select from jsonb_array_elements(conditions) e where e -> 'type' = s -> 'type')),
    'fields', (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(p_status)
      where key not in ('conditions', 'observedGeneration') and value is distinct from t.status -> key),
    'removedFields', (select coalesce(jsonb_agg(f), '[]') from unnest(c.status_fields) f
      where t.status ? f and not p_status ? f));
  perform plumbline.assert_own_report(p_controller, report);
  observed := known.observed_generation;
  -- What was read is sent back by who has nothing to say about it.
  if said is distinct from t.status -> 'observedGeneration' and jsonb_typeof(said) <> 'null' then
    perform plumbline.assert_observed(to_jsonb(observed), said, t.generation);
    observed := said::numeric::bigint;
  elsif jsonb_typeof(said) = 'number' then
    observed := greatest(observed, said::numeric::bigint);
  end if;
  if known.uid is null or p_token > coalesce(known.fencing_token, 0)
    or observed is distinct from known.observed_generation then
    insert into plumbline.report_elsewhere (controller, uid, fencing_token, observed_generation)
      values (p_controller, t.uid, p_token, observed)
      on conflict (uid, controller) do update
        set fencing_token = excluded.fencing_token, observed_generation = excluded.observed_generation;
  end if;
  merged := plumbline.merge_status(t.status, p_controller, report);
  if merged -> 'conditions' = '[]' and not t.status ? 'conditions' then
    merged := merged - 'conditions';
  end if;
  if observed is not null then
    merged := merged || jsonb_build_object('observedGeneration', plumbline.observed_by_all(t, p_controller));
  end if;
  perform set_config('plumbline.writer', p_controller, true);
  is_fenced := false;
  for object in update plumbline.resource r set status = merged where r.uid = t.uid returning r.* loop
    return next;
  end loop;
  perform set_config('plumbline.writer', '', true);
end
$$;

-- A status in the name of no controller, with the times of its conditions: of now where the status of one has changed or is
-- new, whatever was sent; otherwise the one from before.
create function plumbline.stamp_conditions(p_before jsonb, p_status jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when jsonb_typeof(p_status -> 'conditions') <> 'array' or not p_status ? 'conditions' then p_status
    else p_status || jsonb_build_object('conditions', (
      select coalesce(jsonb_agg(case
        when b is null then c || jsonb_build_object('lastTransitionTime',
          to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        when b ? 'lastTransitionTime' then c || jsonb_build_object('lastTransitionTime', b -> 'lastTransitionTime')
        else c - 'lastTransitionTime' end order by n), '[]')
      from jsonb_array_elements(p_status -> 'conditions') with ordinality said (c, n)
      left join lateral (
        select b from jsonb_array_elements(
          case when jsonb_typeof(p_before -> 'conditions') = 'array' then p_before -> 'conditions' else '[]' end) b
        where b -> 'type' = c -> 'type' and b -> 'status' = c -> 'status' limit 1) known on true)) end
$$;

grant execute on function plumbline.report_status, plumbline.stamp_conditions to plumbline_server;

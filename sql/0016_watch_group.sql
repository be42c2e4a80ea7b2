-- Watch groups: who shares the events of which tenants, who holds which lane, and how far each lane is confirmed.
-- Locks are taken in one order: rows of groups by id, members by id, lanes in the order of (watch_group, stream, lane), dead
-- letters by id. Whoever assigns lanes or has them begin anew locks the group's row; who only renews or confirms does not, so
-- that it waits for nobody who settles. All that is written on a lane names its fence.

create table plumbline.watch_group (
  id bigint generated always as identity (cache 1) primary key,
  audience text not null check (audience in ('public', 'private')),
  -- Sorted, each once, with commas between; * is the open set.
  tenants text not null,
  owner text not null,
  name text not null,
  selection text not null,
  -- What of the selection failed over an event, and ended a member, the last time.
  failure text,
  failed_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- Since when it has no member; absent while it has one.
  idle_since timestamptz,
  -- infinity: it lives. An ended one keeps its row, so that its successor can tell that positions were lost.
  ended_at timestamptz not null default 'infinity',
  was_deleted boolean not null default false,
  -- Rises with whatever its members must look at.
  version bigint not null default 0,
  -- The open streams when it was last settled; see open_streams.
  settled_with text not null default ''
) with (fillfactor = 70);

-- One that lives for each identity. A digest, since an index takes no text of any length.
create unique index watch_group_identity on plumbline.watch_group
  (audience, owner, name, sha256(tenants::bytea), ended_at);

-- Who is in a group. It is renewed by this one row, however many lanes it holds.
create table plumbline.group_member (
  id bigint generated always as identity (cache 1) primary key,
  watch_group bigint not null references plumbline.watch_group (id),
  joined_at timestamptz not null default clock_timestamp(),
  -- Of the group's tenants those that it does not see: none of their lanes is for it. It is another member when that changes.
  blocked_tenants text[] not null,
  expires_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index group_member_group on plumbline.group_member (watch_group);

-- How far a group is in a part of a stream, and who has it.
create table plumbline.group_lane (
  watch_group bigint not null references plumbline.watch_group (id),
  stream bigint not null references plumbline.stream (id),
  lane smallint not null check (lane between 0 and 15),
  -- Whose row is gone, it holds nothing: the lane is free.
  member bigint,
  -- Who waits for it, and when it is taken from its holder.
  next_member bigint,
  hand_over_by timestamptz,
  -- Rises whenever the lane begins anew.
  fence bigint not null default 1,
  -- Everything up to here is confirmed, or was before the lane began. What is removed behind it is lost to the group, which
  -- is told so.
  confirmed_seq bigint not null,
  confirmed_position bigint not null,
  -- The last event that was delivered under this fence.
  delivered_seq bigint,
  -- Since when something is delivered, and nothing was confirmed.
  unacked_since timestamptz,
  -- The last delivered event of each time before, as far as it is not confirmed.
  delivered_before bigint[] not null default '{}',
  not_before timestamptz,
  primary key (watch_group, stream, lane),
  check ((next_member is null) = (hand_over_by is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index group_lane_member on plumbline.group_lane (member);
-- Which streams a group has, and which groups a stream.
create index group_lane_streams on plumbline.group_lane (watch_group, stream) where lane = 0;
create index group_lane_groups on plumbline.group_lane (stream) where lane = 0;
create index group_lane_wanted on plumbline.group_lane (watch_group) where next_member is not null;

-- Events that were delivered too often, and were parked: out of their lane, kept until they are delivered again, skipped, or their stream
-- or group is gone.
create table plumbline.group_dead_letter (
  id bigint generated always as identity primary key,
  watch_group bigint not null references plumbline.watch_group (id),
  stream bigint not null references plumbline.stream (id),
  lane smallint not null,
  seq bigint not null,
  position bigint not null,
  event text not null,
  type text not null,
  -- How often it was delivered.
  attempts integer not null,
  reason text not null,
  parked_at timestamptz not null default clock_timestamp(),
  -- Rises whenever it is delivered, refused or asked for again: what is answered to a delivery before that does nothing.
  fence bigint not null default 1,
  -- How often it may be delivered again; absent: nobody asks for it.
  deliveries_left smallint check (deliveries_left >= 0),
  unique (watch_group, stream, seq)
);

create index group_dead_letter_order on plumbline.group_dead_letter (watch_group, id);
create index group_dead_letter_stream on plumbline.group_dead_letter (stream);
create index group_dead_letter_wanted on plumbline.group_dead_letter (watch_group, stream, lane)
  where deliveries_left is not null;

-- What was done to groups by hand.
create table plumbline.group_action (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  watch_group bigint not null references plumbline.watch_group (id),
  deed text not null,
  done_by text not null,
  reason text not null
);

create index group_action_group on plumbline.group_action (watch_group);

grant select on plumbline.watch_group, plumbline.group_member, plumbline.group_lane, plumbline.group_dead_letter
  to plumbline_server;
grant select on plumbline.group_action to plumbline_worker;

-- Of the ends of earlier deliveries those that count yet: behind the confirmed event. More than a thousand nobody asks for.
create function plumbline.ends_behind(p_ends bigint[], p_confirmed bigint) returns bigint[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select array(select e from unnest(p_ends) e where e > p_confirmed order by e desc limit 1000)
$$;

-- What it is to begin anew, whoever raises the fence: what was delivered and is not confirmed becomes an attempt.
create function plumbline.lane_begins_anew() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- Of thousands of lanes at once nothing was delivered on most.
  if new.delivered_seq is not null or new.delivered_before <> '{}' then
    new.delivered_before := plumbline.ends_behind(new.delivered_before || new.delivered_seq, new.confirmed_seq);
  end if;
  new.delivered_seq := null;
  new.unacked_since := null;
  return new;
end
$$;

create trigger lane_begins_anew before update of fence on plumbline.group_lane
  for each row when (new.fence > old.fence) execute function plumbline.lane_begins_anew();

-- Closed streams of which something may be left in the log: few at any time.
create index stream_ending on plumbline.stream (id) where closed_at is not null and removed_at is null;

-- Tells the members of groups to look. The rows of the groups are the caller's, locked.
create function plumbline.tell_of_groups(p_groups bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update plumbline.watch_group set version = version + 1 where id = any (p_groups);
  perform pg_notify('plumbline_watch_group', g::text) from unnest(p_groups) g;
end
$$;

-- A text that is another one when other streams are open. One look at a thousand streams takes 0.3 ms, and is one for all
-- groups that are asked for.
create function plumbline.open_streams() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*) || '/' || coalesce(bit_xor(hashint8extended(id, 0)), 0) from plumbline.stream where closed_at is null
$$;

-- Open streams of the group's tenants that it has no lanes of.
create function plumbline.missing_streams(p_group bigint) returns setof bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with named as materialized (
    select tenant from plumbline.watch_group g, unnest(string_to_array(g.tenants, ',')) tenant where g.id = p_group
  )
  -- Looked up in a hash table, whatever the planner thinks: a thousand times a thousand comparisons take 300 ms.
  select s.id from plumbline.stream s
  where s.closed_at is null and (s.tenant in (select tenant from named) or '*' in (select tenant from named))
    and not exists (
      select from plumbline.group_lane l where l.watch_group = p_group and l.stream = s.id and l.lane = 0)
$$;

-- Streams of the group that will bring it nothing any more: closed, all of it in the log, and confirmed in every lane.
create function plumbline.ended_streams(p_group bigint) returns setof bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  -- Nothing of the group is looked at for those that are open.
  closed constant bigint[] := array(
    select id from plumbline.stream where closed_at is not null and removed_at is null);
begin
  return query select g.stream from plumbline.group_lane g
  where g.watch_group = p_group and g.lane = 0 and g.stream = any (closed)
    and not exists (select from plumbline.outbox o where o.stream = g.stream)
    and not exists (select from plumbline.group_dead_letter d where d.watch_group = p_group and d.stream = g.stream)
    and not exists (
      select from plumbline.group_lane l join plumbline.frontier f on f.stream = l.stream
      where l.watch_group = p_group and l.stream = g.stream and l.confirmed_seq < f.last_seq);
end
$$;

-- Lanes of the group that were not handed over in time.
create function plumbline.has_overdue_lanes(p_group bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
  select exists (select from plumbline.group_lane
    where watch_group = p_group and next_member is not null and hand_over_by <= clock_timestamp())
$$;

-- Those of these groups that settle_due_group has something to do in, in an order of chance: processes that settle at once
-- begin with different ones. It locks nothing and looks at no lane while nothing changes: all ask for it again and again.
create function plumbline.unsettled_groups(p_groups bigint[]) returns setof bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  streams constant text := plumbline.open_streams();
begin
  return query select g.id from plumbline.watch_group g
  where g.id = any (p_groups) and g.ended_at = 'infinity' and (
    g.settled_with <> streams
    or exists (select from plumbline.group_member m where m.watch_group = g.id and m.expires_at <= clock_timestamp())
    or plumbline.has_overdue_lanes(g.id) or exists (select from plumbline.ended_streams(g.id)))
  order by random();
end
$$;

-- The position of a stream's events before the first that is kept, as far as is known here.
create function plumbline.position_before_kept(f plumbline.frontier) returns bigint
language sql immutable
return case when (f).topic is null then (f).first_seq - 1
  when (f).first_seq > (f).last_seq then (f).last_position else (f).start_position end;

-- How many lanes of each stream each member should have. Of each stream two members that see it have the same number or one
-- apart, and so it is with all they have together, as far as that is possible; among such shares, one that moves few lanes.
-- The ended streams are left out. With p_only it is about these streams, and the others stay as they are.
create function plumbline.lane_targets(p_group bigint, p_ended bigint[], p_only bigint[]) returns table (
  stream bigint, member bigint, held integer, target integer
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  members constant bigint[] := array(select id from plumbline.group_member where watch_group = p_group order by id);
  n constant integer := cardinality(members);
  -- By stream, and in it by member.
  streams bigint[];
  owners bigint[];
  seen boolean[];
  helds integer[];
  -- What all that see the stream have of it, and who has one more.
  bases integer[];
  has_extra boolean[];
  totals integer[] := array_fill(0, array[n]);
  first integer;
  fullest integer;
  emptiest integer;
  has_moved boolean;
begin
  if p_only is not null then
    totals := array(
      select coalesce(t.lanes, 0)::integer from unnest(members) with ordinality m (id, place)
      left join (
        select coalesce(l.next_member, l.member) as member, count(*) as lanes from plumbline.group_lane l
        where l.watch_group = p_group and l.stream <> all (p_only) group by 1
      ) t on t.member = m.id order by m.place);
  end if;
  -- At first they go to who holds that many now, the others in turn.
  select array_agg(r.stream order by turn, place), array_agg(r.member order by turn, place),
      array_agg(r.is_seen order by turn, place), array_agg(r.held order by turn, place),
      array_agg(case when r.is_seen then r.base else 0 end order by turn, place),
      array_agg(r.is_seen and r.rank <= r.extras order by turn, place)
    into streams, owners, seen, helds, bases, has_extra
  from (
    select h.*, row_number() over (partition by h.stream
      order by h.is_seen desc, greatest(h.held - base, 0) desc, ((place - turn * extras) % n + n) % n) as rank
    from (
      select c.*, 16 / greatest(viewers, 1) as base, 16 % greatest(viewers, 1) as extras
      from (
        select s.stream, s.turn, m.place, m.id as member, m.is_seen, count(l.lane)::integer as held,
          (count(*) filter (where m.is_seen) over (partition by s.stream))::integer as viewers
        from (select g.stream, s.tenant, row_number() over (order by g.stream) as turn
          from plumbline.group_lane g join plumbline.stream s on s.id = g.stream
          where g.watch_group = p_group and g.lane = 0 and g.stream <> all (p_ended)
            and (p_only is null or g.stream = any (p_only))) s
        cross join lateral (
          select o.id, o.place, s.tenant <> all (g.blocked_tenants) as is_seen
          from unnest(members) with ordinality o (id, place) join plumbline.group_member g on g.id = o.id
        ) m
        left join plumbline.group_lane l on l.watch_group = p_group and l.stream = s.stream and l.member = m.id
        group by s.stream, s.turn, m.place, m.id, m.is_seen
      ) c
    ) h
  ) r;
  for i in 1 .. coalesce(cardinality(has_extra), 0) loop
    totals[(i - 1) % n + 1] := totals[(i - 1) % n + 1] + bases[i] + has_extra[i]::integer;
  end loop;
  -- From who has many of them in all to who has few: those first that nobody holds yet. Who has more has one in a stream
  -- where the other has none, so this ends when all have the same number, or one apart.
  for may_move_held in 0 .. 1 loop
    loop
      has_moved := false;
      for turn in 0 .. coalesce(cardinality(has_extra), 0) / greatest(n, 1) - 1 loop
        first := turn * n;
        fullest := null;
        emptiest := null;
        for j in 1 .. n loop
          if not seen[first + j] then
            continue;
          elsif not has_extra[first + j] then
            if emptiest is null or totals[j] < totals[emptiest] then
              emptiest := j;
            end if;
          elsif (may_move_held = 1 or helds[first + j] <= bases[first + j]) and (fullest is null or totals[j] > totals[fullest]) then
            fullest := j;
          end if;
        end loop;
        if totals[fullest] - totals[emptiest] > 1 then
          has_extra[first + fullest] := false;
          has_extra[first + emptiest] := true;
          totals[fullest] := totals[fullest] - 1;
          totals[emptiest] := totals[emptiest] + 1;
          has_moved := true;
        end if;
      end loop;
      exit when not has_moved;
    end loop;
  end loop;
  return query select t.stream, t.member, t.held, t.base + t.has_extra::integer
    from unnest(streams, owners, helds, bases, has_extra) t (stream, member, held, base, has_extra);
end
$$;

-- A lane that goes to a member, now or once its holder is done with it; without a member, a wish that is withdrawn.
create type plumbline.lane_move as (stream bigint, lane smallint, member bigint, is_taken boolean);

-- Makes a group what it should be now. Members that have expired go; new streams get lanes, at their beginning; ended ones
-- lose them; and when any of that was so, or a member has joined, lanes are shared out. Free ones are taken at once; one that
-- has a holder is wanted for five seconds, in which its holder can be done with it, and then taken. The group's row is the
-- caller's, locked.
create function plumbline.settle_group(p_group bigint, p_has_joined boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  -- A constant: only so it bounds what is read from an index.
  now_at constant timestamptz := clock_timestamp();
  -- Before the missing ones are looked for: one that is opened meanwhile has it settled once more.
  streams constant text := plumbline.open_streams();
  ended constant bigint[] := array(select plumbline.ended_streams(p_group));
  is_due boolean := p_has_joined or ended <> '{}' or plumbline.has_overdue_lanes(p_group);
  last_expiry timestamptz;
  made bigint[];
  -- Where nothing else has changed, the new streams are shared out and no other: forty groups of a thousand tenants have a
  -- new one within 0.9 s instead of 2.8 s.
  fresh bigint[];
  moves plumbline.lane_move[];
begin
  with gone as (
    delete from plumbline.group_member where id in (
      -- One that is being renewed at this moment lives on.
      select id from plumbline.group_member where watch_group = p_group and expires_at <= now_at for update skip locked)
    returning expires_at
  )
  select max(expires_at) into last_expiry from gone;
  is_due := is_due or last_expiry is not null;
  update plumbline.watch_group set idle_since = coalesce(last_expiry, now_at)
    where id = p_group and idle_since is null
      and not exists (select from plumbline.group_member where watch_group = p_group);
  update plumbline.watch_group set settled_with = streams where id = p_group and settled_with <> streams;
  if found then
    made := array(select plumbline.missing_streams(p_group));
    insert into plumbline.group_lane (watch_group, stream, lane, confirmed_seq, confirmed_position)
      select p_group, stream, lane, 0, 0 from unnest(made) stream cross join generate_series(0, 15) lane;
    if not is_due and made <> '{}' then
      fresh := made;
      is_due := true;
    end if;
  end if;
  if not is_due then
    return;
  end if;
  with targets as materialized (
    select * from plumbline.lane_targets(p_group, ended, fresh)
  ), lacking as (
    select t.stream, t.member, row_number() over (partition by t.stream order by t.member) as place
    from targets t cross join generate_series(1, t.target - t.held)
  ), held as (
    select l.stream, l.lane, l.next_member, l.hand_over_by, t.member is null as is_free, t.held - t.target as surplus,
      row_number() over (partition by l.stream, l.member
        order by l.next_member is null, l.unacked_since is not null, l.lane) as nth
    from plumbline.group_lane l left join targets t on t.stream = l.stream and t.member = l.member
    where l.watch_group = p_group and l.stream <> all (ended) and (fresh is null or l.stream = any (fresh))
  ), spare as (
    select h.*, row_number() over (partition by h.stream order by h.is_free desc, h.next_member is null, h.lane) as place
    from held h where h.is_free or h.nth <= h.surplus
  ), goals as (
    select s.stream, s.lane, l.member, s.is_free or coalesce(s.hand_over_by <= now_at, false) as is_taken
    from spare s join lacking l on l.stream = s.stream and l.place = s.place
  )
  select array_agg((h.stream, h.lane, g.member, coalesce(g.is_taken, false))::plumbline.lane_move) into moves
    from held h left join goals g on g.stream = h.stream and g.lane = h.lane
    where g.is_taken or g.member is distinct from h.next_member;
  if moves is null and ended = '{}' then
    return;
  end if;
  perform from plumbline.group_lane l
    where l.watch_group = p_group and (l.stream = any (ended)
      or exists (select from unnest(moves) m where m.stream = l.stream and m.lane = l.lane))
    order by l.stream, l.lane for update;
  delete from plumbline.group_lane where watch_group = p_group and stream = any (ended);
  update plumbline.group_lane l
    set member = m.member, next_member = null, hand_over_by = null, fence = l.fence + 1
    from unnest(moves) m
    where l.watch_group = p_group and l.stream = m.stream and l.lane = m.lane and m.is_taken;
  update plumbline.group_lane l
    set next_member = m.member,
      hand_over_by = case when m.member is not null then coalesce(l.hand_over_by, now_at + interval '5 seconds') end
    from unnest(moves) m
    where l.watch_group = p_group and l.stream = m.stream and l.lane = m.lane and not m.is_taken;
  perform plumbline.tell_of_groups(array[p_group]);
end
$$;

-- Settles a group if there is something to do, behind whoever does so now.
create function plumbline.settle_due_group(p_group bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.watch_group where id = p_group and ended_at = 'infinity' for no key update;
  if found and exists (select from plumbline.unsettled_groups(array[p_group])) then
    perform plumbline.settle_group(p_group, false);
  end if;
end
$$;

-- Makes a member, and the group when none of this identity lives. A new group begins at the oldest events, or where the
-- streams end now.
create function plumbline.join_group(
  p_audience text, p_tenants text, p_owner text, p_name text, p_selection text, p_from_now boolean,
  p_blocked_tenants text[], p_lease interval, p_max_groups integer,
  out watch_group bigint, out member bigint, out is_new boolean, out lost_at timestamptz
) language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  joined plumbline.watch_group;
begin
  perform plumbline.assert_read_committed('joining a group');
  loop
    select * into joined from plumbline.watch_group g
      where g.audience = p_audience and g.owner = p_owner and g.name = p_name and g.tenants = p_tenants
        and sha256(g.tenants::bytea) = sha256(p_tenants::bytea) and g.ended_at = 'infinity'
      for no key update;
    exit when joined.id is not null or is_new;
    -- Groups of one owner are made one after the other: there is a limit, and one of each identity.
    perform pg_advisory_xact_lock(hashtextextended('plumbline/groups/' || p_audience || '/' || p_owner, 0));
    is_new := true;
  end loop;
  is_new := joined.id is null;
  if is_new then
    if (select count(*) from plumbline.watch_group g
      where g.audience = p_audience and g.owner = p_owner and g.ended_at = 'infinity') >= p_max_groups then
      raise exception 'there are % groups of this owner already, and no more are allowed; delete one', p_max_groups
        using errcode = 'PL429';
    end if;
    insert into plumbline.watch_group (audience, tenants, owner, name, selection)
      values (p_audience, p_tenants, p_owner, p_name, p_selection) returning * into joined;
  elsif joined.selection <> p_selection then
    if exists (select from plumbline.group_member m
      where m.watch_group = joined.id and m.expires_at > clock_timestamp()) then
      raise exception 'its members select %; select the same, or use a group of another name',
        case joined.selection when '' then 'everything' else joined.selection end using errcode = 'PL409';
    end if;
    update plumbline.watch_group set selection = p_selection, failure = null, failed_at = null where id = joined.id;
  end if;
  insert into plumbline.group_member (watch_group, blocked_tenants, expires_at)
    values (joined.id, p_blocked_tenants, clock_timestamp() + p_lease) returning id into member;
  if is_new then
    -- All that it sees is the first member's: sharing it out afterwards would write each lane twice.
    insert into plumbline.group_lane (watch_group, stream, lane, member, confirmed_seq, confirmed_position)
      select joined.id, f.stream, lane, case when s.tenant <> all (p_blocked_tenants) then join_group.member end,
        case when p_from_now then f.last_seq else f.first_seq - 1 end,
        case when p_from_now then f.last_position else plumbline.position_before_kept(f) end
      from plumbline.missing_streams(joined.id) missing
      join plumbline.stream s on s.id = missing join plumbline.frontier f on f.stream = s.id
      cross join generate_series(0, 15) lane;
  end if;
  update plumbline.watch_group set idle_since = null where id = joined.id and idle_since is not null;
  perform plumbline.settle_group(joined.id, true);
  watch_group := joined.id;
  -- Of its last predecessor, unless that was deleted on purpose.
  select g.ended_at into lost_at from (
    select p.ended_at, p.was_deleted from plumbline.watch_group p
    where p.audience = p_audience and p.owner = p_owner and p.name = p_name and p.tenants = p_tenants
      and sha256(p.tenants::bytea) = sha256(p_tenants::bytea) and p.id < joined.id
    order by p.id desc limit 1
  ) g where not g.was_deleted;
end
$$;

-- Extends those of these members that live, and returns them. It waits for nobody who settles their groups.
create function plumbline.renew_members(p_members bigint[], p_lease interval) returns setof bigint
language sql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
  with living as (
    select m.id from plumbline.group_member m where m.id = any (p_members) and m.expires_at > clock_timestamp()
    order by m.id for no key update
  )
  update plumbline.group_member m set expires_at = clock_timestamp() + p_lease from living
    where m.id = living.id returning m.id
$$;

-- What these members hold, of those that live. Each stream is looked up by its key: while its statistics are older than a
-- thousand new tenants, the planner would read all of them for each lane, which took 13 s.
create function plumbline.lanes_of(p_members bigint[]) returns table (
  watch_group bigint, stream bigint, lane smallint, fence bigint, member bigint, tenant text, confirmed_seq bigint,
  confirmed_position bigint, delivered_before bigint[], pause_ms float8, is_wanted boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  select l.watch_group, l.stream, l.lane, l.fence, l.member, s.tenant, l.confirmed_seq, l.confirmed_position,
    l.delivered_before, greatest(0, extract(epoch from l.not_before - clock_timestamp()) * 1000)::float8,
    l.next_member is not null
  from plumbline.group_member m join plumbline.group_lane l on l.member = m.id join plumbline.stream s on s.id = l.stream
  where m.id = any (p_members) and m.expires_at > clock_timestamp()
  order by l.watch_group, l.stream, l.lane
$$;

-- Locks the lanes that are held with these fences, in their order.
create function plumbline.lock_held_lanes(p_groups bigint[], p_streams bigint[], p_lanes bigint[], p_fences bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_nestloop = on set jit = off as $$
begin
  perform from unnest(p_groups, p_streams, p_lanes, p_fences) h (watch_group, stream, lane, fence)
    join plumbline.group_lane l
      on l.watch_group = h.watch_group and l.stream = h.stream and l.lane = h.lane and l.fence = h.fence
    order by l.watch_group, l.stream, l.lane for no key update of l;
end
$$;

-- Keeps what was delivered and what is confirmed, of lanes that are held with these fences; -1 is nothing. Both only rise.
create function plumbline.mark_lanes(
  p_groups bigint[], p_streams bigint[], p_lanes bigint[], p_fences bigint[], p_delivered bigint[], p_seqs bigint[],
  p_positions bigint[]
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
begin
  perform plumbline.lock_held_lanes(p_groups, p_streams, p_lanes, p_fences);
  update plumbline.group_lane l set
    confirmed_seq = greatest(l.confirmed_seq, m.seq),
    confirmed_position = case when m.seq > l.confirmed_seq then m.position else l.confirmed_position end,
    delivered_seq = greatest(l.delivered_seq, m.delivered),
    delivered_before = case when l.delivered_before = '{}' then '{}'
      else plumbline.ends_behind(l.delivered_before, greatest(l.confirmed_seq, m.seq)) end,
    unacked_since = case when greatest(l.delivered_seq, m.delivered) > greatest(l.confirmed_seq, m.seq) then
      case when m.seq > l.confirmed_seq then clock_timestamp()
        else coalesce(l.unacked_since, clock_timestamp()) end end
  from (
    select watch_group, stream, lane, fence, nullif(max(delivered), -1) as delivered, nullif(max(seq), -1) as seq,
      (array_agg(position order by seq desc))[1] as position
    from unnest(p_groups, p_streams, p_lanes, p_fences, p_delivered, p_seqs, p_positions)
      m (watch_group, stream, lane, fence, delivered, seq, position)
    group by watch_group, stream, lane, fence
  ) m
  where l.watch_group = m.watch_group and l.stream = m.stream and l.lane = m.lane and l.fence = m.fence
    and (m.seq > l.confirmed_seq or m.delivered > coalesce(l.delivered_seq, -1));
end
$$;

create type plumbline.judged_ack as (
  watch_group bigint, stream bigint, lane bigint, fence bigint, seq bigint, position bigint, result text
);

-- What these acks are worth, in their order; see AckResult. Of the tenants the owner sees these, or all but these. The lanes
-- are locked: it stays so until the transaction ends.
create function plumbline.judge_acks(
  p_audience text, p_owner text, p_tenants text[], p_is_all_but boolean, p_groups bigint[], p_streams bigint[],
  p_lanes bigint[], p_fences bigint[], p_seqs bigint[], p_positions bigint[]
) returns plumbline.judged_ack[]
language sql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with given as (
    select * from unnest(p_groups, p_streams, p_lanes, p_fences, p_seqs, p_positions)
      with ordinality a (watch_group, stream, lane, fence, seq, position, n)
  ), lanes as materialized (
    select l.watch_group, l.stream, l.lane, l.fence, l.confirmed_seq as confirmed
    from (select distinct watch_group, stream, lane from given) a
    join plumbline.watch_group g on g.id = a.watch_group and g.audience = p_audience and g.owner = p_owner
    join plumbline.stream s on s.id = a.stream and (s.tenant = any (p_tenants)) <> p_is_all_but
    join plumbline.group_lane l on l.watch_group = a.watch_group and l.stream = a.stream and l.lane = a.lane
    order by l.watch_group, l.stream, l.lane for no key update of l
  )
  select array_agg((a.watch_group, a.stream, a.lane, a.fence, a.seq, a.position, case
      when l.fence is null then 'Unknown'
      when a.seq <= l.confirmed then 'Duplicate'
      when a.fence = l.fence then 'Acked'
      else 'Fenced' end)::plumbline.judged_ack order by a.n)
  from given a left join lanes l on l.watch_group = a.watch_group and l.stream = a.stream and l.lane = a.lane
$$;

-- Confirms each lane up to the highest of its acks. Returns what became of each, in their order.
create function plumbline.ack_lanes(
  p_audience text, p_owner text, p_tenants text[], p_is_all_but boolean, p_groups bigint[], p_streams bigint[],
  p_lanes bigint[], p_fences bigint[], p_seqs bigint[], p_positions bigint[]
) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  judged constant plumbline.judged_ack[] := plumbline.judge_acks(
    p_audience, p_owner, p_tenants, p_is_all_but, p_groups, p_streams, p_lanes, p_fences, p_seqs, p_positions);
begin
  perform plumbline.mark_lanes(array_agg(j.watch_group), array_agg(j.stream), array_agg(j.lane), array_agg(j.fence),
      array_agg(-1::bigint), array_agg(j.seq), array_agg(j.position))
    from unnest(judged) j where j.result = 'Acked' having count(*) > 0;
  return query select j.result from unnest(judged) with ordinality j order by j.ordinality;
end
$$;

-- Lanes with a nack begin anew behind what is confirmed, after the longest of their delays. Returns what became of each
-- nack, in their order.
create function plumbline.nack_lanes(
  p_audience text, p_owner text, p_tenants text[], p_is_all_but boolean, p_groups bigint[], p_streams bigint[],
  p_lanes bigint[], p_fences bigint[], p_seqs bigint[], p_positions bigint[], p_delays_ms bigint[]
) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  judged plumbline.judged_ack[];
begin
  perform from plumbline.watch_group where id = any (p_groups) and audience = p_audience and owner = p_owner
    order by id for no key update;
  judged := plumbline.judge_acks(
    p_audience, p_owner, p_tenants, p_is_all_but, p_groups, p_streams, p_lanes, p_fences, p_seqs, p_positions);
  update plumbline.group_lane l
    set fence = l.fence + 1, delivered_seq = greatest(l.delivered_seq, n.seq),
      not_before = clock_timestamp() + n.delay_ms * interval '1 millisecond'
    from (
      select j.watch_group, j.stream, j.lane, max(j.seq) as seq, max(delay_ms) as delay_ms
      from rows from (unnest(judged), unnest(p_delays_ms))
        j (watch_group, stream, lane, fence, seq, position, result, delay_ms)
      where j.result = 'Acked' group by j.watch_group, j.stream, j.lane
    ) n where l.watch_group = n.watch_group and l.stream = n.stream and l.lane = n.lane;
  perform plumbline.tell_of_groups(array(
    select distinct j.watch_group from unnest(judged) j where j.result = 'Acked'));
  return query select j.result from unnest(judged) with ordinality j order by j.ordinality;
end
$$;

-- Gives lanes to who waits for them; those that nobody waits for any more stay.
create function plumbline.release_lanes(p_groups bigint[], p_streams bigint[], p_lanes bigint[], p_fences bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off
  -- Statistics are mostly of a time when nobody waited for any: each lane given would be compared with each that is waited
  -- for. 8,000 of them took 27 s.
  set enable_nestloop = off set enable_mergejoin = off as $$
declare
  changed bigint[];
begin
  perform from plumbline.watch_group where id = any (p_groups) order by id for no key update;
  perform plumbline.lock_held_lanes(p_groups, p_streams, p_lanes, p_fences);
  with released as (
    update plumbline.group_lane l
      set member = l.next_member, next_member = null, hand_over_by = null, fence = l.fence + 1
      from (select distinct * from unnest(p_groups, p_streams, p_lanes, p_fences)) r (watch_group, stream, lane, fence)
      where l.watch_group = r.watch_group and l.stream = r.stream and l.lane = r.lane and l.fence = r.fence
        and l.next_member is not null
      returning l.watch_group
  )
  select array_agg(distinct watch_group) into changed from released;
  perform plumbline.tell_of_groups(changed);
end
$$;

-- Ends members, with what is to be kept of their lanes; those that have ended before are left out. Returns their groups,
-- each once: others get the lanes when these are settled, by whomever.
create function plumbline.leave_groups(
  p_members bigint[], p_groups bigint[], p_streams bigint[], p_lanes bigint[], p_fences bigint[], p_delivered bigint[],
  p_seqs bigint[], p_positions bigint[]
) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  leaving constant bigint[] := array(
    select m.id from plumbline.group_member m where m.id = any (p_members) order by m.id for no key update);
begin
  perform plumbline.mark_lanes(p_groups, p_streams, p_lanes, p_fences, p_delivered, p_seqs, p_positions);
  -- Expired, not gone: so it is seen that there is something to settle, should whoever leaves not come to it.
  update plumbline.group_member set expires_at = least(expires_at, clock_timestamp()) where id = any (leaving);
  return query select distinct m.watch_group from plumbline.group_member m where m.id = any (leaving);
end
$$;

-- Keeps what ended a member, for who looks after the group.
create function plumbline.note_group_failure(p_group bigint, p_failure text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update plumbline.watch_group set failure = left(p_failure, 1000), failed_at = clock_timestamp()
    where id = p_group and ended_at = 'infinity'
$$;

-- Lanes begin anew at who holds them: what they delivered can be confirmed no more.
create function plumbline.begin_lanes_anew(p_groups bigint[], p_streams bigint[], p_lanes bigint[], p_fences bigint[])
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  changed bigint[];
begin
  perform from plumbline.watch_group where id = any (p_groups) order by id for no key update;
  perform plumbline.lock_held_lanes(p_groups, p_streams, p_lanes, p_fences);
  with begun as (
    update plumbline.group_lane l set fence = l.fence + 1
      from (select distinct * from unnest(p_groups, p_streams, p_lanes, p_fences)) h (watch_group, stream, lane, fence)
      where l.watch_group = h.watch_group and l.stream = h.stream and l.lane = h.lane and l.fence = h.fence
      returning l.watch_group
  )
  select array_agg(distinct watch_group) into changed from begun;
  perform plumbline.tell_of_groups(changed);
end
$$;

-- Makes an event of a lane a dead letter; the lane is then confirmed up to it. Fenced: the lane is not held with this fence.
-- Full: the group has so many, and nothing was done.
create function plumbline.park_event(
  p_group bigint, p_stream bigint, p_lane integer, p_fence bigint, p_seq bigint, p_position bigint, p_event text,
  p_type text, p_attempts integer, p_reason text, p_max integer
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  held plumbline.group_lane;
begin
  perform plumbline.assert_read_committed('parking an event');
  -- One after the other in a group: there is a limit.
  perform from plumbline.watch_group where id = p_group for no key update;
  select * into held from plumbline.group_lane
    where watch_group = p_group and stream = p_stream and lane = p_lane and fence = p_fence for no key update;
  if not found then
    return 'Fenced';
  end if;
  -- It may have been confirmed in between.
  if p_seq <= held.confirmed_seq then
    return 'Parked';
  end if;
  update plumbline.group_dead_letter d
    set attempts = greatest(d.attempts, p_attempts), reason = p_reason, parked_at = clock_timestamp(),
      fence = d.fence + 1, deliveries_left = null
    where d.watch_group = p_group and d.stream = p_stream and d.seq = p_seq;
  if not found then
    if (select count(*) from plumbline.group_dead_letter d where d.watch_group = p_group) >= p_max then
      return 'Full';
    end if;
    insert into plumbline.group_dead_letter (watch_group, stream, lane, seq, position, event, type, attempts, reason)
      values (p_group, p_stream, p_lane, p_seq, p_position, p_event, p_type, p_attempts, p_reason);
  end if;
  perform plumbline.mark_lanes(array[p_group], array[p_stream], array[p_lane::bigint], array[p_fence], array[p_seq],
    array[p_seq], array[p_position]);
  return 'Parked';
end
$$;

-- Dead letters that are asked for, with these fences, are about to be delivered to a member: returns those of lanes that it
-- holds and nobody waits for, in the order of their ids, until their events have so many bytes. One that was delivered as
-- often as it may be is asked for no more.
create function plumbline.deliver_dead_letters(
  p_member bigint, p_ids bigint[], p_fences bigint[], p_max_bytes integer
) returns setof plumbline.group_dead_letter
language sql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with asked as materialized (
    select d.id, d.deliveries_left, octet_length(d.event) as bytes
    from unnest(p_ids, p_fences) a (id, fence)
    join plumbline.group_dead_letter d on d.id = a.id and d.fence = a.fence and d.deliveries_left is not null
    join plumbline.group_lane l on l.watch_group = d.watch_group and l.stream = d.stream and l.lane = d.lane
      and l.member = p_member and l.next_member is null
    join plumbline.group_member m on m.id = l.member and m.expires_at > clock_timestamp()
    order by d.id for no key update of d
  ), spent as (
    update plumbline.group_dead_letter d set deliveries_left = null from asked where d.id = asked.id
      and asked.deliveries_left = 0
  )
  update plumbline.group_dead_letter d
    set fence = d.fence + 1, attempts = d.attempts + 1, deliveries_left = d.deliveries_left - 1
    from (
      select id, sum(bytes) over (order by id) - bytes as ahead from asked where deliveries_left > 0
    ) page where d.id = page.id and page.ahead < p_max_bytes
    returning d.*
$$;

-- Dead letters were delivered, with these fences: confirmed, and forgotten; or refused, and kept until they are asked for
-- again. Returns what became of each, in their order.
create function plumbline.end_retries(
  p_audience text, p_owner text, p_tenants text[], p_is_all_but boolean, p_groups bigint[], p_streams bigint[],
  p_ids bigint[], p_fences bigint[], p_is_confirmed boolean
) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  results text[];
  changed bigint[];
begin
  perform from plumbline.watch_group where id = any (p_groups) and audience = p_audience and owner = p_owner
    order by id for no key update;
  with asked as materialized (
    select a.n, a.id, a.fence, g.id as watch_group
    from unnest(p_groups, p_streams, p_ids, p_fences) with ordinality a (watch_group, stream, id, fence, n)
    left join plumbline.watch_group g
      on g.id = a.watch_group and g.audience = p_audience and g.owner = p_owner and g.ended_at = 'infinity'
      and exists (select from plumbline.stream s where s.id = a.stream and (s.tenant = any (p_tenants)) <> p_is_all_but)
  ), dead_letters as materialized (
    select d.id, d.fence from plumbline.group_dead_letter d
    where (d.watch_group, d.id) in (select watch_group, id from asked) order by d.id for update
  ), judged as materialized (
    select a.n, a.id, a.watch_group, case when a.watch_group is null then 'Unknown' when l.id is null then 'Duplicate'
      when l.fence = a.fence then 'Acked' else 'Fenced' end as result
    from asked a left join dead_letters l on l.id = a.id and a.watch_group is not null
  ), confirmed as (
    delete from plumbline.group_dead_letter d
      where p_is_confirmed and d.id in (select id from judged where result = 'Acked')
  ), refused as (
    update plumbline.group_dead_letter d set fence = d.fence + 1, deliveries_left = null
      where not p_is_confirmed and d.id in (select id from judged where result = 'Acked')
  )
  select array_agg(result order by n), array_agg(distinct watch_group) filter (where result = 'Acked')
    into results, changed from judged;
  perform plumbline.tell_of_groups(changed);
  return query select unnest(results);
end
$$;

-- Keeps what was done to a group by hand, and tells its members to look. The group's row is the caller's, locked.
create function plumbline.note_group_action(p_group bigint, p_deed text, p_by text, p_reason text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into plumbline.group_action (watch_group, deed, done_by, reason) values (p_group, p_deed, p_by, p_reason);
  perform plumbline.tell_of_groups(array[p_group]);
end
$$;

-- Has a dead letter delivered again, ahead of its lane: three times at most until it is confirmed or refused. One that is
-- on its way to a member is not sent to it once more. False when there is none.
create function plumbline.retry_dead_letter(p_group bigint, p_id bigint, p_by text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  dead_letter plumbline.group_dead_letter;
begin
  perform from plumbline.watch_group where id = p_group for no key update;
  update plumbline.group_dead_letter
    set fence = fence + (deliveries_left is null)::integer, deliveries_left = 3
    where watch_group = p_group and id = p_id returning * into dead_letter;
  if not found then
    return false;
  end if;
  perform plumbline.note_group_action(
    p_group, format('retry of event %s of stream %s', dead_letter.seq, dead_letter.stream), p_by, p_reason);
  return true;
end
$$;

-- Gives a dead letter up; false when there is none.
create function plumbline.skip_dead_letter(p_group bigint, p_id bigint, p_by text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  dead_letter plumbline.group_dead_letter;
begin
  perform from plumbline.watch_group where id = p_group for no key update;
  delete from plumbline.group_dead_letter where watch_group = p_group and id = p_id returning * into dead_letter;
  if not found then
    return false;
  end if;
  perform plumbline.note_group_action(
    p_group, format('skip of event %s of stream %s', dead_letter.seq, dead_letter.stream), p_by, p_reason);
  return true;
end
$$;

-- Sets all lanes of a group by hand: to earliest, to now, or behind these points, where a stream without one begins at its
-- beginning. Attempts are counted anew. False when the group is gone.
create function plumbline.seek_group(
  p_group bigint, p_to text, p_streams bigint[], p_seqs bigint[], p_positions bigint[], p_by text, p_reason text
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.watch_group where id = p_group and ended_at = 'infinity' for no key update;
  if not found then
    return false;
  end if;
  perform from plumbline.group_lane where watch_group = p_group order by stream, lane for no key update;
  update plumbline.group_lane l
    set fence = l.fence + 1, confirmed_seq = t.seq, confirmed_position = t.position, delivered_seq = null,
      delivered_before = '{}', not_before = null
    from (
      select f.stream, case p_to when 'now' then f.last_seq when 'points' then coalesce(p.seq, 0)
          else f.first_seq - 1 end as seq,
        case p_to when 'now' then f.last_position when 'points' then coalesce(p.position, 0)
          else plumbline.position_before_kept(f) end as position
      from plumbline.frontier f
      left join unnest(p_streams, p_seqs, p_positions) p (stream, seq, position) on p.stream = f.stream
    ) t where l.watch_group = p_group and l.stream = t.stream;
  perform plumbline.note_group_action(p_group, 'seek to ' || p_to, p_by, p_reason);
  return true;
end
$$;

-- Makes a group as if it were new, with the members that it has. False when the group is gone.
create function plumbline.reset_group(p_group bigint, p_by text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not plumbline.seek_group(p_group, 'earliest', '{}', '{}', '{}', p_by, p_reason) then
    return false;
  end if;
  perform from plumbline.group_dead_letter where watch_group = p_group order by id for update;
  delete from plumbline.group_dead_letter where watch_group = p_group;
  perform plumbline.note_group_action(p_group, 'reset: dead letters are forgotten', p_by, p_reason);
  return true;
end
$$;

-- Removes all that groups have but their rows. Those are the caller's, locked.
create function plumbline.end_groups(p_groups bigint[], p_was_deleted boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.group_member where watch_group = any (p_groups) order by id for update;
  delete from plumbline.group_member where watch_group = any (p_groups);
  perform from plumbline.group_lane where watch_group = any (p_groups) order by watch_group, stream, lane for update;
  delete from plumbline.group_lane where watch_group = any (p_groups);
  perform from plumbline.group_dead_letter where watch_group = any (p_groups) order by id for update;
  delete from plumbline.group_dead_letter where watch_group = any (p_groups);
  update plumbline.watch_group set ended_at = clock_timestamp(), was_deleted = p_was_deleted where id = any (p_groups);
  perform plumbline.tell_of_groups(p_groups);
end
$$;

-- Ends a group by hand: its members, positions and dead letters are gone. False when it is gone already.
create function plumbline.delete_group(p_group bigint, p_by text, p_reason text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from plumbline.watch_group where id = p_group and ended_at = 'infinity' for no key update;
  if not found then
    return false;
  end if;
  perform plumbline.end_groups(array[p_group], true);
  perform plumbline.note_group_action(p_group, 'delete', p_by, p_reason);
  return true;
end
$$;

-- Settles groups whose members have all expired, a hundred at most: the last member has nobody who notes that it has.
-- Returns how many are idle by it. Those that somebody is about are left.
create function plumbline.settle_abandoned_groups() returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  abandoned constant bigint[] := array(
    select g.id from plumbline.watch_group g
    where g.ended_at = 'infinity' and g.idle_since is null and not exists (
      select from plumbline.group_member m where m.watch_group = g.id and m.expires_at > clock_timestamp())
    order by g.id limit 100 for no key update skip locked);
begin
  perform plumbline.settle_group(g, false) from unnest(abandoned) g;
  return (select count(*) from plumbline.watch_group where id = any (abandoned) and idle_since is not null);
end
$$;

-- Ends groups that have had no member for so long, a hundred at most; returns how many. Those that somebody is about are
-- left.
create function plumbline.drop_idle_groups(p_idle interval) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  idle constant bigint[] := array(
    select id from plumbline.watch_group where ended_at = 'infinity' and idle_since <= clock_timestamp() - p_idle
    order by id limit 100 for no key update skip locked);
begin
  perform plumbline.end_groups(idle, false);
  return cardinality(idle);
end
$$;

-- Forgets what was done by hand so long ago, and groups that ended so long ago; a hundred groups and a thousand deeds at
-- most. Returns how many of both.
create function plumbline.forget_ended_groups(p_kept interval) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  too_old constant timestamptz := clock_timestamp() - p_kept;
  ended constant bigint[] := array(
    select id from plumbline.watch_group where ended_at <= too_old order by id limit 100 for update skip locked);
  deeds constant bigint[] := array(select id from plumbline.group_action where at <= too_old order by id limit 1000);
begin
  perform from plumbline.group_action where id = any (deeds) or watch_group = any (ended) order by id for update;
  -- What was done to a group goes with it, its end too.
  delete from plumbline.group_action where id = any (deeds) or watch_group = any (ended);
  delete from plumbline.watch_group where id = any (ended);
  return cardinality(ended) + cardinality(deeds);
end
$$;

-- What groups know of a stream goes with it.
create function plumbline.groups_forget_stream() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  groups constant bigint[] := array(select watch_group from plumbline.group_lane where stream = new.id and lane = 0);
begin
  perform from plumbline.watch_group where id = any (groups) order by id for no key update;
  perform from plumbline.group_lane where watch_group = any (groups) and stream = new.id
    order by watch_group, lane for update;
  delete from plumbline.group_lane where watch_group = any (groups) and stream = new.id;
  perform from plumbline.group_dead_letter where stream = new.id order by id for update;
  delete from plumbline.group_dead_letter where stream = new.id;
  perform plumbline.tell_of_groups(groups);
  return null;
end
$$;

create trigger groups_forget_stream after update of removed_at on plumbline.stream
  for each row when (new.removed_at is not null) execute function plumbline.groups_forget_stream();

grant execute on function plumbline.join_group, plumbline.renew_members, plumbline.lanes_of, plumbline.unsettled_groups,
  plumbline.settle_due_group, plumbline.mark_lanes, plumbline.ack_lanes, plumbline.nack_lanes, plumbline.release_lanes,
  plumbline.leave_groups, plumbline.note_group_failure, plumbline.begin_lanes_anew, plumbline.park_event,
  plumbline.deliver_dead_letters, plumbline.end_retries,
  plumbline.retry_dead_letter, plumbline.skip_dead_letter, plumbline.seek_group, plumbline.reset_group,
  plumbline.delete_group, plumbline.settle_abandoned_groups, plumbline.drop_idle_groups,
  plumbline.forget_ended_groups to plumbline_worker;

-- Blocks of tokens, by operators. A token is good until it expires; a block takes it from its bearer before that, or takes
-- one tenant from it. Each process holds all blocks in memory and hears of changes, so there should be hundreds, not
-- millions: give them an end where tokens have one.
create table plumbline.token_block (
  id bigint generated always as identity primary key,
  -- All tokens of a subject, or the one token with this `jti`.
  subject text check (char_length(subject) between 1 and 253),
  token_id text check (char_length(token_id) between 1 and 253),
  -- Null: everything.
  tenant text check (tenant ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  reason text not null check (char_length(reason) between 1 and 1000),
  -- Who made it, as far as the database and the program that wrote it know.
  blocked_by text not null default session_user check (char_length(blocked_by) between 1 and 253),
  blocked_at timestamptz not null default clock_timestamp(),
  -- Null: until it is removed.
  expires_at timestamptz check (isfinite(expires_at)),
  constraint token_block_names_one check (num_nonnulls(subject, token_id) = 1),
  constraint token_block_once unique nulls not distinct (subject, token_id, tenant)
);

create function plumbline.token_block_notify() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_notify('plumbline_token_block', '');
  return null;
end
$$;

create trigger token_block_notify after insert or update or delete or truncate on plumbline.token_block
  for each statement execute function plumbline.token_block_notify();

-- The blocks that are in force now.
create view plumbline.token_block_in_force with (security_invoker = true) as
  select id, subject, token_id, tenant, reason, blocked_by, blocked_at, expires_at from plumbline.token_block
  where expires_at is null or expires_at > clock_timestamp();

-- Servers obey blocks; they do not make them.
grant select on plumbline.token_block, plumbline.token_block_in_force to plumbline_worker;

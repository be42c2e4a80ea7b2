-- Roles, schema and the migration ledger. Idempotent: runs before every migration, under the migration lock.
-- plumbline_migrator owns every object; plumbline_server serves, and may not change the schema nor switch capture off; it
-- sees the tenants that its transaction names, see 0020_row_security.sql. plumbline_worker may do the same and sees all
-- tenants: it publishes, reconciles and looks after the log, and may alone call the functions for that, which know no tenant.
-- They are group roles. A login that only serves is best a member of plumbline_server alone: who is a member of several
-- can leave the one for the other.
do $$
begin
  if not exists (select from pg_roles where rolname = 'plumbline_migrator') then
    create role plumbline_migrator nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'plumbline_server') then
    create role plumbline_server nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'plumbline_worker') then
    create role plumbline_worker nologin in role plumbline_server;
  end if;
exception
  -- Roles belong to the whole cluster: another database's migration may create them at the same moment.
  when duplicate_object or unique_violation then null;
end
$$;

do $$
declare
  role text;
  -- From 16 on, whoever creates a role may administer it, which is not yet the right to act as it.
  needed constant text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  foreach role in array array['plumbline_migrator', 'plumbline_server', 'plumbline_worker'] loop
    if not pg_has_role(current_user, role, needed) then
      execute format('grant %I to %I', role, current_user);
    end if;
  end loop;
end
$$;

create schema if not exists plumbline authorization plumbline_migrator;

create table if not exists plumbline.migration (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
);
alter table plumbline.migration owner to plumbline_migrator;
grant usage on schema plumbline to plumbline_server;
grant select on plumbline.migration to plumbline_server;
-- Functions are for the roles that are named, not for everyone who can connect.
alter default privileges for role plumbline_migrator revoke execute on functions from public;

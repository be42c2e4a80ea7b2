-- The ring of keys that seal cursors, shared by all servers of this database. A key opens cursors of all tenants, so it is
-- not for statements that serve some.
-- Ids are one byte: the newest seals, all open.
create table plumbline.cursor_key (
  id smallint primary key check (id between 0 and 255),
  key bytea not null check (octet_length(key) = 32),
  created_at timestamptz not null default clock_timestamp()
);

grant select, insert on plumbline.cursor_key to plumbline_worker;

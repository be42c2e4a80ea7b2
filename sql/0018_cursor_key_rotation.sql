-- Rotation of cursor keys while servers run. A new key lies here, where every server reads it, for a while before it
-- seals: what one server seals, all others can open from the first token on. Tokens carry the last byte of the id.
-- Keys belong to one database. In a copy, such as one that was restored from a backup, they seal and open nothing: its
-- numbers go on from an earlier place, so a cursor of the original could pass over events.
alter table plumbline.cursor_key
  add column seals_from timestamptz not null default clock_timestamp(),
  add column database_identity text not null default plumbline.database_identity(),
  drop constraint cursor_key_id_check,
  add check (id >= 0);

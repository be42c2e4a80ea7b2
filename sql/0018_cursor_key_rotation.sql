-- Rotation of cursor keys while servers run. A new key lies here, where every server reads it, for a while before it
-- seals: what one server seals, all others can open from the first token on. Tokens carry the last byte of the id.
alter table plumbline.cursor_key
  add column seals_from timestamptz not null default clock_timestamp(),
  drop constraint cursor_key_id_check,
  add check (id >= 0);

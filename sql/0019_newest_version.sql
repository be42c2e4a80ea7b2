-- A list that is asked for "no older than" a version compares it with the newest one that was drawn.
-- Locks: none that others wait for.

grant select on sequence plumbline.resource_version_seq to plumbline_server;

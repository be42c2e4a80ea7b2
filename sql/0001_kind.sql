-- The kind registry: what raw SQL and the triggers must know of a kind. Kinds are code (defineKind); every start of
-- a server writes its kinds here, so that rows written by SQL obey the same rules as rows written over HTTP.
create table plumbline.kind (
  api_group text collate "C" not null,
  kind text collate "C" not null,
  version text not null,
  plural text not null,
  scope text not null check (scope in ('Namespaced', 'Cluster')),
  -- Paths of secrets below spec and status, such as {spec,password} or {spec,users,*,token}; '*' is every element.
  -- Stored as one dotted text each. They are left out of every event and every API answer.
  redact text[] not null default '{}',
  -- Put on every new object of the kind, one per controller.
  finalizers text[] not null default '{}',
  primary key (api_group, kind),
  unique (api_group, plural)
);

grant select on plumbline.kind to plumbline_server;

-- Removes one path from a document. Absent parts are no error; '*' walks every element of an array or object.
create function plumbline.redact_path(document jsonb, path text[]) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if cardinality(path) = 1 and path[1] <> '*' then
    return case when jsonb_typeof(document) = 'object' then document - path[1] else document end;
  elsif path[1] = '*' and jsonb_typeof(document) = 'array' then
    return case when cardinality(path) = 1 then '[]'::jsonb else
      (select coalesce(jsonb_agg(plumbline.redact_path(e.value, path[2:]) order by e.ordinality), '[]'::jsonb)
         from jsonb_array_elements(document) with ordinality e) end;
  elsif path[1] = '*' and jsonb_typeof(document) = 'object' then
    return case when cardinality(path) = 1 then '{}'::jsonb else
      (select coalesce(jsonb_object_agg(e.key, plumbline.redact_path(e.value, path[2:])), '{}'::jsonb)
         from jsonb_each(document) e) end;
  elsif jsonb_typeof(document) = 'object' and document ? path[1] then
    return jsonb_set(document, path[1:1], plumbline.redact_path(document -> path[1], path[2:]));
  end if;
  return document;
end
$$;

-- The document of one root ('spec' or 'status') without the kind's secret paths; the document itself when it has none.
create function plumbline.redact(root text, document jsonb, paths text[]) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  path text;
begin
  foreach path in array paths loop
    if split_part(path, '.', 1) = root then
      document := plumbline.redact_path(document, (string_to_array(path, '.'))[2:]);
    end if;
  end loop;
  return document;
end
$$;

grant execute on function plumbline.redact, plumbline.redact_path to plumbline_server;

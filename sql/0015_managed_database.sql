-- Managed databases are real from this version on. Fields that the kind had before, and that nothing ever obeyed, go: else
-- the schema would refuse every write of an object that has them.
update plumbline.resource set spec = spec - 'provider' - 'password'
  where api_group = 'plumbline.dev' and kind = 'ManagedDatabase' and deletion_timestamp is null
    and (spec ? 'provider' or spec ? 'password');

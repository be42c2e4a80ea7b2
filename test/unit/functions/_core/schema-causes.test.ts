import * as v from 'valibot';
import { describe, expect, test } from 'vitest';

import { managedDatabaseKind } from '#core/kinds/managed-database.ts';
import { roleBindingKind } from '#core/kinds/role-binding.ts';
import { tenantKind } from '#core/kinds/tenant.ts';
import type { JsonObject } from '#core/json.ts';
import { validateDocument } from '#core/schema-causes.ts';
import type { Kind } from '#core/kind.ts';

function causesOf(kind: Kind, spec: JsonObject): string[] {
  return (validateDocument('spec', spec, kind.spec, kind.redact).causes ?? []).map(
    (cause) => `${cause.reason} ${cause.field}: ${cause.message}`,
  );
}

describe('a document against its schema', () => {
  test('gives one cause for each field that is wrong, each unknown one among them', () => {
    expect(causesOf(roleBindingKind, { role: 'king', subject: 'Bad Name', x: 1, y: { z: 2 } })).toEqual([
      'FieldValueRequired spec.database: required',
      expect.stringMatching(/^FieldValueInvalid spec\.subject: must have 1 to 63 lower-case/),
      expect.stringMatching(/^FieldValueNotSupported spec\.role: .*"reader" \| "writer" \| "owner"/),
      'FieldValueForbidden spec.x: unknown field',
      'FieldValueForbidden spec.y: unknown field',
    ]);
    expect(causesOf(tenantKind, { displayName: 5 })).toEqual([
      expect.stringMatching(/^FieldValueTypeInvalid spec\.displayName/),
    ]);
    expect(causesOf(managedDatabaseKind, { connectionLimit: 1.5, extensions: ['citext', 'citext'] })).toEqual([
      expect.stringMatching(/^FieldValueInvalid spec\.extensions: must not have a name twice/),
      expect.stringMatching(/^FieldValueInvalid spec\.connectionLimit/),
    ]);
  });

  test('applies defaults', () => {
    expect(validateDocument('spec', {}, managedDatabaseKind.spec, []).document).toEqual({
      server: 'local',
      adoptionPolicy: 'Never',
      deletionPolicy: 'Delete',
    });
  });

  test('quotes no secret, also where a value around it is wrong', () => {
    const secret = 'hunter2-hunter2';
    const schema = v.object({ users: v.array(v.object({ token: v.pipe(v.string(), v.regex(/^t-/)), n: v.number() })) });
    const { causes = [] } = validateDocument('spec', { users: [{ token: secret, n: secret }] }, schema, [
      'spec.users.*.token',
    ]);
    expect(causes.map((cause) => [cause.field, cause.message.includes(secret)])).toEqual([
      ['spec.users[0].token', false],
      ['spec.users[0].n', true],
    ]);
  });

  test('bounds what it says about a hostile document', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, 'x'.repeat(50)]));
    const { causes = [] } = validateDocument('spec', many, tenantKind.spec, []);
    expect(causes).toHaveLength(51);
    expect(causes.at(-1)?.message).toBe('and 9950 more problems');
    const [long] = causesOf(tenantKind, { displayName: 'x'.repeat(100_000) });
    expect(long?.length).toBeLessThan(400);
  });

  test('stores what JSON keeps of what the schema gives', () => {
    const schema = v.pipe(
      v.object({ at: v.string() }),
      v.transform(({ at }) => ({ at: new Date(at), gone: undefined })),
    );
    expect(validateDocument('spec', { at: '2026-01-01' }, schema, []).document).toEqual({
      at: '2026-01-01T00:00:00.000Z',
    });
  });
});

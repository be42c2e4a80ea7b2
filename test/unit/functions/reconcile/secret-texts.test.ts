import { expect, test } from 'vitest';
import type { ResourceRow } from '#core/resource.ts';
import { secretHider } from '#functions/reconcile/secret-texts.ts';

function rowWith(spec: object, status: object): ResourceRow {
  return { spec: JSON.stringify(spec), status: JSON.stringify(status) } as ResourceRow;
}

test('secrets of spec and status are taken out of a text wherever they stand in it', () => {
  const row = rowWith({ password: 'hunter22', users: [{ token: 'abcdefgh' }] }, { key: 'qwertyui', host: 'db.local' });
  const hide = secretHider(row, ['spec.password', 'spec.users.*.token', 'status.key']);
  expect(hide('hunter22@db.local: hunter22, abcdefgh, qwertyui')).toBe('***@db.local: ***, ***, ***');
});

test('a secret that is as short as a word stays: it would take ordinary words out', () => {
  expect(secretHider(rowWith({ pin: 'is' }, {}), ['spec.pin'])('this is it')).toBe('this is it');
});

test('a secret that is a part of another leaves nothing of the longer one', () => {
  const hide = secretHider(rowWith({ a: 'secret', b: 'secret-and-more' }, {}), ['spec.a', 'spec.b']);
  expect(hide('it was secret-and-more')).toBe('it was ***');
});

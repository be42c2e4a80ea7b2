import { expect, test } from 'vitest';

import { parseFieldSelector } from '#core/field-selector.ts';

const NONE = { names: [], namespaces: [] };

test.for([
  ['', { not: NONE, isEmpty: false }],
  ['metadata.name=blue', { name: 'blue', not: NONE, isEmpty: false }],
  ['metadata.name==blue, metadata.namespace=acme', { name: 'blue', namespace: 'acme', not: NONE, isEmpty: false }],
  ['metadata.name=a,metadata.name=a', { name: 'a', not: NONE, isEmpty: false }],
  ['metadata.name=a,metadata.name=b', { name: 'b', not: NONE, isEmpty: true }],
  ['metadata.name=Not A Name', { name: 'Not A Name', not: NONE, isEmpty: true }],
  ['metadata.namespace=a.b', { namespace: 'a.b', not: NONE, isEmpty: true }],
  ['metadata.name!=a,metadata.name!=B', { not: { names: ['a'], namespaces: [] }, isEmpty: false }],
  ['metadata.namespace!=a,metadata.name=b', { name: 'b', not: { names: [], namespaces: ['a'] }, isEmpty: false }],
  ['metadata.name=a,metadata.name!=a', { name: 'a', not: { names: ['a'], namespaces: [] }, isEmpty: true }],
] as const)('%j selects %j', ([text, selector]) => {
  expect(parseFieldSelector(text)).toEqual(selector);
});

test.for([
  ['spec.size=1', 'field label not supported: spec.size'],
  [Array.from({ length: 101 }, () => 'metadata.name!=a').join(','), '101 terms'],
  ['metadata.name', 'not of the form field=value'],
  ['=a', 'not of the form field=value'],
] as const)('%j is refused', ([text, words]) => {
  expect(() => parseFieldSelector(text)).toThrow(
    expect.objectContaining({ code: 400, message: expect.stringContaining(words) }),
  );
});

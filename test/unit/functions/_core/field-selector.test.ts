import { expect, test } from 'vitest';

import { parseFieldSelector } from '#core/field-selector.ts';

test.for([
  ['', { isEmpty: false }],
  ['metadata.name=blue', { name: 'blue', isEmpty: false }],
  ['metadata.name==blue, metadata.namespace=acme', { name: 'blue', namespace: 'acme', isEmpty: false }],
  ['metadata.name=a,metadata.name=a', { name: 'a', isEmpty: false }],
  ['metadata.name=a,metadata.name=b', { name: 'b', isEmpty: true }],
  ['metadata.name=Not A Name', { name: 'Not A Name', isEmpty: true }],
  ['metadata.namespace=a.b', { namespace: 'a.b', isEmpty: true }],
] as const)('%j selects %j', ([text, selector]) => {
  expect(parseFieldSelector(text)).toEqual(selector);
});

test.for([
  ['spec.size=1', 'field label not supported: spec.size'],
  ['metadata.name!=a', '"!=" is not supported'],
  ['metadata.name', 'not of the form field=value'],
  ['=a', 'not of the form field=value'],
] as const)('%j is refused', ([text, words]) => {
  expect(() => parseFieldSelector(text)).toThrow(
    expect.objectContaining({ code: 400, message: expect.stringContaining(words) }),
  );
});

import { expect, test } from 'vitest';

import { parseEventSelector } from '#core/event-selector.ts';

test.for([
  ['', []],
  [' , ', []],
  ['type=Warning', [{ field: 'type', is: true, value: 'Warning' }]],
  ['type!=Normal', [{ field: 'type', is: false, value: 'Normal' }]],
  [
    'involvedObject.name==w, involvedObject.namespace=',
    [
      { field: 'involvedObject.name', is: true, value: 'w' },
      { field: 'involvedObject.namespace', is: true, value: '' },
    ],
  ],
] as const)('%j selects %j', ([text, conditions]) => {
  expect(parseEventSelector(text)).toEqual(conditions);
});

test.for([
  ['spec.size=1', 'field label not supported: spec.size; known are metadata.name'],
  ['toString=1', 'field label not supported: toString'],
  ['reason', 'not of the form field=value'],
  ['=a', 'not of the form field=value'],
] as const)('%j is refused', ([text, words]) => {
  expect(() => parseEventSelector(text)).toThrow(
    expect.objectContaining({ code: 400, message: expect.stringContaining(words) }),
  );
});

import { expect, test } from 'vitest';
import { markerText, ownershipOf, readMarker } from '#core/reconcile/marker.ts';

const marker = { installation: 'f00', kind: 'example.dev/Widget', uid: '0199' };

test('a marker is read as it was written', () => {
  expect(readMarker(markerText(marker))).toEqual(marker);
});

test.each<[string | null | undefined, string]>([
  ['plumbline:f00/example.dev/Widget/0199', 'ours'],
  ['plumbline:f00/example.dev/Widget/0200', 'foreign'],
  ['plumbline:bar/example.dev/Widget/0199', 'foreign'],
  ['plumbline:f00/example.dev/Gadget/0199', 'foreign'],
  ['plumbline:f00/example.dev/Widget/0199 and more', 'foreign'],
  ['the orders of the shop', 'unowned'],
  ['plumbline:', 'unowned'],
  ['', 'unowned'],
  [null, 'unowned'],
  [undefined, 'unowned'],
])('what bears the comment %j is %s', (text, ownership) => {
  expect(ownershipOf(text, marker)).toBe(ownership);
});

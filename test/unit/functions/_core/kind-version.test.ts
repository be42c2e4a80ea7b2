import { expect, test } from 'vitest';

import { byPriority, isKindVersion } from '#core/kind-version.ts';

test('stable versions come before beta ones, those before alpha ones, and larger ones first', () => {
  const versions = ['v1alpha1', 'v2', 'v11beta2', 'v10', 'v1beta1', 'v11', 'v1beta11', 'v3alpha2'];
  expect(versions.toSorted(byPriority)).toEqual([
    'v11',
    'v10',
    'v2',
    'v11beta2',
    'v1beta11',
    'v1beta1',
    'v3alpha2',
    'v1alpha1',
  ]);
});

test.each(['1', 'v0', 'v01', 'v1gamma1', 'v1beta', 'v1beta0', 'V1', 'v1 ', ''])('%j is no version', (text) => {
  expect(isKindVersion(text)).toBe(false);
});

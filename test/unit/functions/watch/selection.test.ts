import { expect, test } from 'vitest';
import { parseLabelSelector } from '#core/label-selector.ts';
import { createSelection } from '#functions/watch/selection.ts';
import { eventOf } from '#test/unit/functions/watch/fakes.ts';

const SELECTIONS = {
  everything: createSelection({}),
  kind: createSelection({ kinds: [{ group: 'example.dev', kind: 'Widget' }] }),
  labels: createSelection({ labels: parseLabelSelector('team=shop') }),
};

test('what was skipped is of no concern to anyone, whatever its labels were', () => {
  const skipped = { ...eventOf(1n, 1), type: 'SKIPPED', labels: '{"team":"shop"}', oldLabels: '{}' } as const;
  for (const selection of Object.values(SELECTIONS)) expect(selection.typeOf(skipped)).toBeUndefined();
  for (const selection of Object.values(SELECTIONS)) {
    expect(selection.typeOf({ ...skipped, type: 'ADDED' })).toBe('ADDED');
  }
});

import { afterAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { FAULTS, openTestKit, type Scenario, type TestKit } from 'plumbline/testkit';
import type { BucketMistakes } from '#test/support/bucket-kind.ts';
import { bucketKind, memoryBuckets } from '#test/support/bucket-kind.ts';

const buckets = memoryBuckets();
const mistakes: { -readonly [Key in keyof BucketMistakes]: boolean } = {};
let opening: Promise<TestKit> | undefined;
let kit: TestKit;
let scenario: Scenario;

beforeEach(async () => {
  opening ??= openTestKit({
    serverUrl: inject('postgresAdminUrl'),
    kinds: (external) => [bucketKind(external(buckets, 'buckets'), mistakes)],
  });
  kit = await opening;
  for (const key of Object.keys(mistakes) as (keyof BucketMistakes)[]) mistakes[key] = false;
  scenario = {
    steps: [
      () => kit.create('Bucket', 'blue', { size: 1 }),
      () => kit.update('Bucket', 'blue', { size: 2 }),
      () => buckets.all.clear(),
      () => kit.delete('Bucket', 'blue'),
    ],
    state: () => Object.fromEntries(buckets.all),
    reset: () => buckets.all.clear(),
  };
});

afterAll(async () => (await opening)?.close());

describe('a controller that is right', () => {
  test('ends the same wherever its process dies', async () => {
    const report = await kit.crashEverywhere(scenario);
    expect(report.calls).toContain('buckets.create');
    expect(report.crashes).toBe(report.calls.length * 2);
  });

  test('ends the same whatever fails, and harms nothing meanwhile', async () => {
    const report = await kit.faultEverywhere(scenario);
    expect(report.runs).toBe(report.calls.length * FAULTS.length);
  });
});

describe('the kit finds, and names,', () => {
  beforeEach(() => {
    // Bare hands: what it does not see, it does not make again.
    scenario = { ...scenario, steps: scenario.steps.filter((_, index) => index !== 2) };
  });

  test.each<[keyof BucketMistakes, string, RegExp]>([
    ['blind', 'crash', /crash after call 2 of \d+ \(buckets\.create\): after step 1, .*conditions\.Ready/s],
    [
      'careless',
      'fault',
      /buckets\.remove .*after step 3, while the fault lasted, all objects said that they were done/s,
    ],
    ['busy', 'crash', /without a crash: after step 1, a look with nothing to do .*ctx\.event/s],
    ['restless', 'crash', /status still changes/],
    ['hasty', 'fault', /of buckets\.read .*while the fault lasted, all objects said that they were done/s],
    [
      'lying',
      'fault',
      /error of buckets\.resize .*after step 2, while the fault lasted.*blue\.size: expected 2, found 1/s,
    ],
  ])('a controller that is %s, by a %s', async (mistake, way, words) => {
    mistakes[mistake] = true;
    await expect(way === 'crash' ? kit.crashEverywhere(scenario) : kit.faultEverywhere(scenario)).rejects.toThrow(
      words,
    );
  });

  test('a scenario that calls nothing outside', async () => {
    await expect(kit.crashEverywhere({ ...scenario, steps: [] })).rejects.toThrow('kit.external(port)');
  });
});

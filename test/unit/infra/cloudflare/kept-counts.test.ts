import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { keepCounts, sumOf } from '#infra/cloudflare/kept-counts.ts';

test('counts go on over registries that come and go; gauges end with theirs', async () => {
  const counts = keepCounts();
  expect(await counts.with(undefined)).toEqual([]);
  for (const amount of [2, 3]) await counts.keep(counting(amount));
  const text = await sumOf([await counts.with(counting(10))]).metrics();
  expect(text).toContain('events_total{kind="a"} 15');
  expect(text).toContain('took_seconds_count 3');
  expect(text).toContain('took_seconds_bucket{le="1"} 3');
  expect(text).toContain('depth 10');
  const alone = await sumOf([await counts.with(undefined)]).metrics();
  expect(alone).toContain('events_total{kind="a"} 5');
  expect(alone).not.toContain('depth');
});

test('what a gauge tells of is not asked when counts are kept', async () => {
  const registry = new Registry();
  const gauge = new Gauge({
    name: 'depth',
    help: 'd',
    registers: [registry],
    collect: () => {
      throw new Error('its connections are closed');
    },
  });
  expect(gauge).toBeDefined();
  await keepCounts().keep(registry);
});

function counting(amount: number): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: 'events_total', help: 'e', labelNames: ['kind'], registers }).inc({ kind: 'a' }, amount);
  new Gauge({ name: 'depth', help: 'd', registers }).set(amount);
  new Histogram({ name: 'took_seconds', help: 't', buckets: [1], registers }).observe(0.5);
  return registry;
}

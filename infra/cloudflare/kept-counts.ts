/** Counts that outlive what counted them: an object that lets go of its connections counts from nothing afterwards. */

import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

export type Metric = MetricObjectWithValues<MetricValue<string>>;

export interface KeptCounts {
  /** Adds what this registry has counted. Gauges end with what they tell of, and are not asked. */
  keep(registry: Registry): Promise<void>;
  /** What was kept, with all that this registry has now. */
  with(registry: Registry | undefined): Promise<readonly Metric[]>;
}

export function keepCounts(): KeptCounts {
  let kept: readonly Metric[] = [];
  return {
    async keep(registry) {
      kept = await readAll(sumOf([kept, await readCounts(registry)]));
    },
    async with(registry) {
      return registry ? readAll(sumOf([kept, await readAll(registry)])) : kept;
    },
  };
}

/** Metrics of the same name are one. */
export function sumOf(parts: readonly (readonly Metric[])[]): Registry {
  return AggregatorRegistry.aggregate(parts.map((metrics) => [...metrics]));
}

function readAll(registry: Registry): Promise<readonly Metric[]> {
  return registry.getMetricsAsJSON();
}

async function readCounts(registry: Registry): Promise<readonly Metric[]> {
  const counts = registry
    .getMetricsAsArray()
    // The types of the package call it a number.
    .filter(({ type }) => String(type) !== 'gauge')
    .map(({ name }) => registry.getSingleMetric(name));
  return Promise.all(counts.flatMap((metric) => metric ?? []).map((metric) => metric.get()));
}

/** Prometheus metrics of reconciling. Controllers are labels, tenants and objects are not: there may be thousands. */

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { WorkState } from '#core/ports/work-queue.ts';

export interface ReconcileMetrics {
  readonly passes: Histogram<'controller' | 'result'>;
  readonly hungPasses: Gauge<'controller'>;
  readonly errors: Counter;
}

/** @param readState is asked at each scrape; when it fails, the queue's gauges are absent. */
export function createReconcileMetrics(registry: Registry, readState: () => Promise<WorkState>): ReconcileMetrics {
  const registers = [registry];
  const stateGauge = (name: string, help: string, valueOf: (state: WorkState) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const state = await readState().catch(() => undefined);
        if (state) this.set(valueOf(state));
        else this.remove();
      },
    });
  stateGauge('plumbline_reconcile_queue_depth', 'Work items that are due', (state) => state.dueItems);
  stateGauge('plumbline_reconcile_failing', 'Work items whose last pass failed', (state) => state.failingItems);
  stateGauge(
    'plumbline_reconcile_deleting_stuck',
    'Objects whose deletion was requested more than five minutes ago',
    (state) => state.stuckDeletions,
  );
  stateGauge(
    'plumbline_reconcile_orphans',
    'External objects with our marker whose object is gone',
    (state) => state.orphans,
  );
  return {
    passes: new Histogram({
      name: 'plumbline_reconcile_duration_seconds',
      help: 'Passes by how they ended: done, not-ready, error, terminal, blocked, finalized, skipped, fenced',
      labelNames: ['controller', 'result'],
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60],
      registers,
    }),
    hungPasses: new Gauge({
      name: 'plumbline_reconcile_hung_passes',
      help: 'Reconcile functions that go on though they were told to end',
      labelNames: ['controller'],
      registers,
    }),
    errors: new Counter({
      name: 'plumbline_reconcile_errors_total',
      help: 'Faults of reconciling itself, such as a store that is away',
      registers,
    }),
  };
}

/** Prometheus metrics of watch groups. */

import { Counter, Gauge, type Registry } from 'prom-client';
import type { WatchGroupTotals } from '#core/ports/watch-group-admin.ts';

export interface GroupMetrics {
  readonly redeliveries: Counter;
  readonly fencedAcks: Counter;
}

/** @param readTotals is asked at each scrape; when it fails, the gauges are absent. They count for the installation. */
export function createGroupMetrics(registry: Registry, readTotals: () => Promise<WatchGroupTotals>): GroupMetrics {
  const registers = [registry];
  let reading: Promise<WatchGroupTotals | undefined> | undefined;
  const gauge = (name: string, help: string, valueOf: (totals: WatchGroupTotals) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const totals = await readOnce();
        if (totals) this.set(valueOf(totals));
        else this.remove();
      },
    });
  gauge('plumbline_groups', 'Watch groups', ({ groups }) => groups);
  gauge('plumbline_group_members', 'Members of watch groups', ({ members }) => members);
  gauge(
    'plumbline_group_lag',
    'The most events that a stream has behind what a lane of a watch group confirmed, of all its lanes; 3 s late at most',
    ({ streamLag }) => streamLag,
  );
  gauge(
    'plumbline_group_oldest_unacked_seconds',
    'How long a member of a watch group has left a delivery unacked at the most',
    ({ oldestUnackedSeconds }) => oldestUnackedSeconds,
  );
  gauge('plumbline_group_dead_letters', 'Dead letters of watch groups, up to 10,000', (totals) => totals.deadLetters);

  return {
    redeliveries: new Counter({
      name: 'plumbline_group_redeliveries_total',
      help: 'Events delivered to a watch group again',
      registers,
    }),
    fencedAcks: new Counter({
      name: 'plumbline_group_fenced_acks_total',
      help: 'Acks and nacks that came after their lane had begun anew',
      registers,
    }),
  };

  /** The gauges of one scrape share a reading: the lag is not free. */
  function readOnce(): Promise<WatchGroupTotals | undefined> {
    reading ??= readTotals()
      .catch(() => undefined)
      .finally(() => (reading = undefined));
    return reading;
  }
}

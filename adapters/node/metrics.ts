/** Prometheus metrics of one process. Tenants are no labels: there may be thousands. */

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { OutboxState } from '#core/ports/outbox.ts';

export interface Metrics {
  readonly registry: Registry;
  readonly published: Counter;
  readonly publishErrors: Counter;
  readonly lostTopics: Counter;
  readonly activeStreams: Gauge<'mode'>;
  readonly endedStreams: Counter<'reason'>;
  readonly isolationViolations: Counter;
  readonly filterErrors: Counter;
  readonly refusedByLimit: Counter<'limit'>;
  readonly requests: Histogram<'method' | 'code'>;
}

/** With those of the process. @param readOutbox is asked at each scrape; when it fails, the outbox's gauges are absent. */
export function createMetrics(readOutbox: () => Promise<OutboxState>): Metrics {
  const metrics = createOwnMetrics(readOutbox);
  collectDefaultMetrics({ register: metrics.registry });
  return metrics;
}

/** The same without the process, of which not every runtime tells. */
export function createOwnMetrics(readOutbox: () => Promise<OutboxState>): Metrics {
  const registry = new Registry();
  const registers = [registry];

  // Each reads for itself: a scrape asks all metrics at once, and waits for each one's own reading only.
  const outboxGauge = (name: string, help: string, valueOf: (state: OutboxState) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const state = await readOutbox().catch(() => undefined);
        if (state) this.set(valueOf(state));
        else this.remove();
      },
    });
  outboxGauge(
    'plumbline_outbox_unpublished_records',
    'Events captured and not yet published',
    (state) => state.records,
  );
  outboxGauge('plumbline_outbox_oldest_seconds', 'Age of the oldest unpublished event', (state) => state.oldestSeconds);
  outboxGauge(
    'plumbline_quarantined_streams',
    'Streams held by a record that cannot be published',
    (state) => state.quarantinedStreams,
  );
  outboxGauge(
    'plumbline_unready_topics',
    'Streams held because their topic is not there',
    (state) => state.unreadyTopics,
  );

  return {
    registry,
    published: new Counter({
      name: 'plumbline_published_events_total',
      help: 'Events moved to the event log',
      registers,
    }),
    publishErrors: new Counter({
      name: 'plumbline_publish_errors_total',
      help: 'Attempts to publish that failed',
      registers,
    }),
    lostTopics: new Counter({
      name: 'plumbline_lost_topics_total',
      help: 'Topics that the brokers lost; their streams go on in others',
      registers,
    }),
    activeStreams: new Gauge({
      name: 'plumbline_watch_active_streams',
      help: 'Open watch streams: broadcast, or members of groups',
      labelNames: ['mode'],
      registers,
    }),
    endedStreams: new Counter({
      name: 'plumbline_watch_ended_streams_total',
      help: 'Ended watch streams: client, age, token, blocked, slow, shutdown, tenant, error, ack, lease',
      labelNames: ['reason'],
      registers,
    }),
    isolationViolations: new Counter({
      name: 'plumbline_isolation_violations_total',
      help: 'Events of a tenant found in the stream of another; must be 0',
      registers,
    }),
    filterErrors: new Counter({
      name: 'plumbline_event_filter_errors_total',
      help: 'Watch streams ended because their filter could not be evaluated over an event',
      registers,
    }),
    refusedByLimit: new Counter({
      name: 'plumbline_refused_by_limit_total',
      help: 'Requests refused with 429 because of a limit: requests, watchers',
      labelNames: ['limit'],
      registers,
    }),
    requests: new Histogram({
      name: 'plumbline_http_request_duration_seconds',
      help: 'Time to the answer; for watches, to its first byte',
      labelNames: ['method', 'code'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
      registers,
    }),
  };
}

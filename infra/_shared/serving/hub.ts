/** The hub of a process: what its watches share, and how it tells of itself. */

import type { GroupMetrics } from '#adapters/node/group-metrics.ts';
import type { Metrics } from '#adapters/node/metrics.ts';
import type { Logger } from '#core/ports/logger.ts';
import { createHub, type Hub, type HubDeps, type HubOptions } from '#functions/watch/hub.ts';

type Reported = Pick<
  HubDeps,
  'onIsolationViolation' | 'onFilterError' | 'onError' | 'onRedelivery' | 'onDeadLettersFull' | 'onOpen' | 'onEnd'
>;

export interface HubReports {
  readonly logger: Logger;
  /** For what must never happen. */
  readonly alarm: Logger['error'];
  readonly metrics: Metrics;
  readonly groupMetrics: GroupMetrics;
}

export function openHub(
  deps: Omit<HubDeps, keyof Reported>,
  { logger, alarm, metrics, groupMetrics }: HubReports,
  options?: HubOptions,
): Hub {
  return createHub(
    {
      ...deps,
      onIsolationViolation: (stream) => {
        metrics.isolationViolations.inc();
        alarm({ stream: String(stream) }, 'an event of another tenant was found in a stream');
      },
      onFilterError: () => metrics.filterErrors.inc(),
      onError: (error) => logger.error({ err: error }, 'watching failed; streams that it concerns are ended'),
      onRedelivery: () => groupMetrics.redeliveries.inc(),
      onDeadLettersFull: (group) =>
        logger.error(
          { group: String(group) },
          'a group has all the dead letters that it may have; lanes of it stand still',
        ),
      onOpen: (mode) => metrics.activeStreams.inc({ mode }),
      onEnd: (reason, mode) => {
        metrics.activeStreams.dec({ mode });
        metrics.endedStreams.inc({ reason });
      },
    },
    options,
  );
}

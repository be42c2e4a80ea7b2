/** What a tenant is told of its stream. */

import type { TenantStream } from '#core/ports/tenant-streams.ts';

export interface StreamReadiness {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** Whether the events of a tenant can be published, in the words of its condition. */
export function streamReadiness(stream: TenantStream): StreamReadiness {
  if (stream.quarantine !== undefined) {
    return {
      status: 'False',
      reason: 'Quarantined',
      message: `its next event cannot be published: ${stream.quarantine}`,
    };
  }
  if (stream.topic === undefined)
    return { status: 'True', reason: 'StreamReady', message: 'events lie in the database' };
  if (stream.isTopicMissing) {
    return { status: 'False', reason: 'TopicMissing', message: 'the brokers do not know the topic' };
  }
  if (!stream.isTopicReady) {
    return { status: 'False', reason: 'TopicPending', message: stream.problem ?? 'the topic is being made' };
  }
  const hours = (stream.retentionMs ?? 0) / 3_600_000;
  const bytes = stream.retentionBytes === undefined ? '' : `, or ${stream.retentionBytes} bytes`;
  return { status: 'True', reason: 'TopicReady', message: `events are kept for ${hours} h${bytes}` };
}

/** The outbox, published into a log outside of PostgreSQL: manifest, append, complete. See the port of manifests. */

import { type AppendedRun, type EventWriter, RecordTooLarge, TopicLost } from '#core/ports/event-writer.ts';
import type { Manifest, Manifests } from '#core/ports/manifests.ts';
import type { BatchLimits, Outbox, PublishResult } from '#core/ports/outbox.ts';
import type { Topics } from '#core/ports/topics.ts';
import { createBackoff } from '#functions/publish/backoff.ts';

/** What one batch takes in memory is a multiple of this, and many streams are published at once. */
const MAX_BATCH_BYTES = 1024 * 1024;

export interface ManifestOutboxDeps {
  /** Where the records are. */
  readonly outbox: Pick<Outbox, 'pendingStreams' | 'quarantineHead'>;
  readonly manifests: Manifests;
  readonly writer: EventWriter;
  readonly topics: Pick<Topics, 'markMissing' | 'replace'>;
  readonly onTopicLost: (topic: string, reason: string) => void;
}

/** The log could not take a batch now. It is the stream's trouble, not that of all: others go on. */
export class AppendFailed extends Error {
  override readonly name = 'AppendFailed';
}

export function manifestOutbox({ outbox, manifests, writer, topics, onTopicLost }: ManifestOutboxDeps): Outbox {
  const backoff = createBackoff<bigint>();
  return { pendingStreams, publishBatch, quarantineHead: outbox.quarantineHead };

  async function pendingStreams(): Promise<readonly bigint[]> {
    return (await outbox.pendingStreams()).filter((stream) => !backoff.isWaiting(stream));
  }

  async function publishBatch(stream: bigint, { maxCount, maxBytes }: BatchLimits): Promise<PublishResult> {
    const manifest = await manifests.begin(stream, { maxCount, maxBytes: Math.min(maxBytes, MAX_BATCH_BYTES) });
    if (typeof manifest === 'string') return { outcome: manifest, published: 0 };
    let runs: readonly AppendedRun[];
    try {
      runs = await writer.append(manifest);
    } catch (error) {
      return explain(manifest, error);
    }
    backoff.succeeded(stream);
    const isOurs = await manifests.complete(manifest, runs);
    return isOurs ? { outcome: 'published', published: manifest.events.length } : { outcome: 'busy', published: 0 };
  }

  async function explain(manifest: Manifest, error: unknown): Promise<PublishResult> {
    if (error instanceof RecordTooLarge) {
      await manifests.quarantine(manifest, error.index, error.message);
      return { outcome: 'quarantined', published: 0, reason: error.message };
    }
    backoff.failed(manifest.stream);
    if (error instanceof TopicLost) {
      if (error.how === 'missing') await topics.markMissing(manifest.topic);
      else await replace(manifest.topic, error.message);
      return { outcome: 'held', published: 0 };
    }
    throw new AppendFailed(`${manifest.events.length} events could not be appended to ${manifest.topic}`, {
      cause: error,
    });
  }

  async function replace(topic: string, reason: string): Promise<void> {
    if (await topics.replace(topic, reason)) onTopicLost(topic, reason);
  }
}

/** The steps between which a publisher into Kafka may die or freeze. */

import type { PublishingPorts } from '#test/support/kafka-publishing.ts';

export const STEPS = [
  'before begin',
  // The manifest is committed; nothing is sent.
  'begun',
  // The append is under way: somewhere between the first byte and the answer.
  'append sent',
  // The events are in the log; PostgreSQL does not know it.
  'append answered',
  // Committed; the publisher was not told.
  'completed',
] as const;

export type Step = (typeof STEPS)[number];

/** From the call of a connected writer to its answer it is about as long. */
const LONGEST_ANSWER_MS = 8;

/** Each step is told, and waited for, before the product goes on. */
export function withSteps(
  { manifests, writer }: PublishingPorts,
  reach: (step: Step) => Promise<void> | void,
): PublishingPorts {
  return {
    manifests: {
      ...manifests,
      async begin(stream, limits) {
        await reach('before begin');
        const begun = await manifests.begin(stream, limits);
        if (typeof begun !== 'string') await reach('begun');
        return begun;
      },
      async complete(manifest, runs) {
        const isOurs = await manifests.complete(manifest, runs);
        await reach('completed');
        return isOurs;
      },
    },
    writer: {
      async append(append) {
        const answer = writer.append(append);
        answer.catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_ANSWER_MS));
        await reach('append sent');
        const runs = await answer;
        await reach('append answered');
        return runs;
      },
    },
  };
}

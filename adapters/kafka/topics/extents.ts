/** Which offsets of topics exist, as their leaders say. */

import type { Broker } from '#adapters/kafka/client/cluster.ts';
import { ask, errorOf } from '#adapters/kafka/client/requests.ts';
import type { Session } from '#adapters/kafka/client/session.ts';
import { topicStates } from '#adapters/kafka/topics/topic-metadata.ts';
import type { TopicExtent } from '#core/ports/topics.ts';

const EARLIEST = -2;
const LATEST = -1;

/**
 * Three requests for all topics of a leader. What has no leader that answers is left out.
 * @throws when no broker can be asked.
 */
export async function readExtents(
  { controller, broker }: Session,
  names: readonly string[],
): Promise<ReadonlyMap<string, TopicExtent | 'missing'>> {
  const extents = new Map<string, TopicExtent | 'missing'>();
  const byLeader = new Map<number, string[]>();
  const states = await topicStates(await controller(), names);
  for (const [name, state] of states) {
    if (state === 'missing') {
      extents.set(name, state);
    } else if (state.leader !== undefined) {
      const led = byLeader.get(state.leader) ?? [];
      led.push(name);
      byLeader.set(state.leader, led);
    }
  }
  const reads = await Promise.allSettled([...byLeader].map(([leader, led]) => readFrom(leader, led)));
  const failed = reads.find((read) => read.status === 'rejected');
  // A leader that does not answer keeps nobody from hearing of the others.
  if (failed && extents.size === 0) throw failed.reason;
  return extents;

  async function readFrom(leader: number, led: readonly string[]): Promise<void> {
    const node = await broker(leader);
    const [starts, ends] = await Promise.all([offsets(node, led, EARLIEST), offsets(node, led, LATEST)]);
    for (const name of led) {
      const start = starts.get(name);
      const end = ends.get(name);
      if (start === 'missing' || end === 'missing') extents.set(name, 'missing');
      else if (start !== undefined && end !== undefined) extents.set(name, { start, end, identity: identityOf(name) });
    }
  }

  function identityOf(name: string): string | undefined {
    const state = states.get(name);
    return state === 'missing' ? undefined : state?.identity;
  }
}

/** Those that this broker does not lead any more are left out. */
async function offsets(
  broker: Broker,
  topics: readonly string[],
  timestamp: number,
): Promise<ReadonlyMap<string, bigint | 'missing'>> {
  const { responses } = await ask(broker, 'ListOffsets', {
    replicaId: -1,
    isolationLevel: 0,
    topics: topics.map((topic) => ({ topic, partitions: [{ partition: 0, timestamp }] })),
  });
  const found = new Map<string, bigint | 'missing'>();
  for (const { topic, partitions } of responses) {
    const [{ errorCode, offset } = { errorCode: -1, offset: '' }] = partitions;
    if (errorCode === 0) found.set(topic, BigInt(offset));
    else if (errorOf(errorCode)?.type === 'UNKNOWN_TOPIC_OR_PARTITION') found.set(topic, 'missing');
  }
  return found;
}

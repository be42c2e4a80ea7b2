/**
 * Makes the brokers' topics what they should be, level by level: missing ones are made, settings follow their tenants,
 * those of deleted tenants go. And looks whether each is still what it was, so that no loss goes unseen.
 */

import { pause } from '#loop/pause.ts';
import type { LogIndex } from '#core/ports/log-index.ts';
import type { CurrentTopic, TopicAdmin, TopicExtent, Topics, TopicSettings } from '#core/ports/topics.ts';

export interface KeepTopicsDeps {
  readonly topics: Topics;
  readonly admin: TopicAdmin;
  readonly index: LogIndex;
  /** Of tenants that ask for nothing. */
  readonly defaults: TopicSettings;
  readonly onLost: (topic: string, reason: string) => void;
  /** The error, and the topic that it concerns if it is one. */
  readonly onError: (error: unknown, topic?: string) => void;
}

const INSPECT_EVERY_MS = 10_000;
/** While a topic is missing, or could not be made. */
const RETRY_MS = 1_000;
const TOPICS_AT_ONCE = 8;
const EXTENTS_AT_ONCE = 500;

/** Until the signal aborts. Any number of processes may do so: every deed may be repeated. */
export async function runTopicKeeper(deps: KeepTopicsDeps, signal: AbortSignal): Promise<void> {
  let look = new AbortController();
  deps.index.onChange(() => look.abort(), signal);
  let inspectAtMs = 0;
  while (!signal.aborted) {
    look = new AbortController();
    const isInspection = performance.now() >= inspectAtMs;
    const { isProvisioned, isSound } = await keepTopics(deps, isInspection).catch((error: unknown) => {
      deps.onError(error);
      return { isProvisioned: false, isSound: false };
    });
    // A topic that can never be made is no reason to look at all others each second.
    if (isInspection && isSound) inspectAtMs = performance.now() + INSPECT_EVERY_MS;
    const isSettled = isProvisioned && isSound;
    // Beside topics that could not be made, news of others are no reason to hurry.
    await (isSettled ? pause(INSPECT_EVERY_MS, AbortSignal.any([signal, look.signal])) : pause(RETRY_MS, signal));
  }
}

/** What is left to be done soon, if not all is well. */
export interface TopicsKept {
  /** All that is due was done. */
  readonly isProvisioned: boolean;
  /** No topic was missing or lost, as far as was looked. */
  readonly isSound: boolean;
  /** A topic was made: what waits for it can be published. */
  readonly hasNew: boolean;
}

/** One round: what a scheduled function calls. */
export async function keepTopics(deps: KeepTopicsDeps, withInspection: boolean = true): Promise<TopicsKept> {
  const provisioned = await provision(deps);
  return { ...provisioned, isSound: !withInspection || (await inspect(deps)) };
}

async function provision({
  topics,
  admin,
  defaults,
  onError,
}: KeepTopicsDeps): Promise<Pick<TopicsKept, 'isProvisioned' | 'hasNew'>> {
  const due = [...(await topics.due(defaults))];
  let isProvisioned = true;
  let hasNew = false;
  await Promise.all(Array.from({ length: TOPICS_AT_ONCE }, takeTopics));
  return { isProvisioned, hasNew };

  async function takeTopics(): Promise<void> {
    for (let topic = due.shift(); topic !== undefined; topic = due.shift()) {
      try {
        if (topic.deed === 'ensure') {
          const identity = await admin.ensure(topic.name, topic.settings);
          await topics.markReady(topic.name, topic.settings, identity);
          hasNew = true;
        } else {
          await admin.remove(topic.name);
          await topics.markRemoved(topic.name);
        }
      } catch (error) {
        isProvisioned = false;
        onError(error, topic.name);
        if (topic.deed === 'ensure') await topics.reportUnready(topic.name, reasonOf(error));
      }
    }
  }
}

/** The frontier is read before the brokers are asked: what was published by then must be there. */
async function inspect(deps: KeepTopicsDeps): Promise<boolean> {
  const current = await deps.topics.current();
  let isSound = true;
  for (let from = 0; from < current.length; from += EXTENTS_AT_ONCE) {
    const some = current.slice(from, from + EXTENTS_AT_ONCE);
    const extents = await deps.admin.extents(some.map(({ name }) => name));
    for (const topic of some) {
      const extent = extents.get(topic.name);
      if (extent !== undefined) isSound = (await compare(deps, topic, extent)) && isSound;
    }
  }
  return isSound;
}

async function compare(deps: KeepTopicsDeps, topic: CurrentTopic, extent: TopicExtent | 'missing'): Promise<boolean> {
  const { topics, index, onLost } = deps;
  if (extent === 'missing') {
    if (await topics.markMissing(topic.name)) await replace('the brokers do not know the topic any more');
    return false;
  }
  if (topic.identity !== undefined && extent.identity !== undefined && topic.identity !== extent.identity) {
    await replace('the topic was deleted, and another one has its name');
    return false;
  }
  if (topic.lastPosition !== undefined && extent.end <= topic.lastPosition) {
    await replace(`the topic ends at offset ${extent.end}, and events up to ${topic.lastPosition} were published`);
    return false;
  }
  if (topic.isMissing) await topics.markFound(topic.name);
  if (extent.start > topic.firstPosition) await index.advanceStart(topic.name, extent.start);
  return true;

  async function replace(reason: string): Promise<void> {
    if (await topics.replace(topic.name, reason)) onLost(topic.name, reason);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

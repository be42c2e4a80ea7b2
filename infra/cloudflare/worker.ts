/**
 * Plumbline on workerd. The resource API runs where the request is; watches run in Durable Objects, and so does what works
 * in the background.
 */

import type { ExecutionContext, ScheduledController } from 'cloudflare:workers';
import { audienceAt } from '#infra/cloudflare/config.ts';
import { answerFailure, objectFailed } from '#infra/cloudflare/failure.ts';
import { identify } from '#infra/cloudflare/identify.ts';
import { edge, kindsOver, requestLogger, tally } from '#infra/cloudflare/installation.ts';
import { answerOperator } from '#infra/cloudflare/operations.ts';
import { answerResourceRequest } from '#infra/cloudflare/resource-api.ts';
import { shardOf } from '#infra/cloudflare/shards.ts';

export { Background } from '#infra/cloudflare/background.ts';
export { KafkaRelay } from '#infra/cloudflare/kafka-relay.ts';
export { WatchShard } from '#infra/cloudflare/watch-shard.ts';

const worker = {
  async fetch(request: Request, _env: unknown, context: ExecutionContext): Promise<Response> {
    const url = new URL(request.url);
    if (edge.opsHost !== undefined && url.host === edge.opsHost) return answerOperator(request, edge);
    const later = (work: Promise<unknown>): void =>
      context.waitUntil(
        work.catch((error: unknown) => requestLogger.warn({ err: error }, 'what was left to do failed; cron does it')),
      );
    const startedAtMs = Date.now();
    const answer = await (
      url.pathname.startsWith('/watch/')
        ? answerWatch(request, url)
        : answerResourceRequest(request, { kindsOver, logger: requestLogger, later })
    ).catch((error: unknown) => answerFailure(request, error));
    tally.answered({ method: request.method, code: answer.status, seconds: (Date.now() - startedAtMs) / 1_000 });
    later(tally.tell());
    return answer;
  },

  async scheduled(_controller: ScheduledController): Promise<void> {
    await edge.background().scheduled();
  },
};

/** Who has no token comes no further: strangers would keep a shard awake, and its connections. */
async function answerWatch(request: Request, url: URL): Promise<Response> {
  await identify[audienceAt(request.url, edge)](request.headers.get('Authorization') ?? undefined);
  const shard = await shardOf(url, edge);
  try {
    return await edge.watchShards.getByName(shard).fetch(request);
  } catch (error) {
    throw objectFailed(`the watch shard ${shard}`, error);
  }
}

// workerd wants a default export.
// oxlint-disable-next-line import/no-default-export
export default worker;

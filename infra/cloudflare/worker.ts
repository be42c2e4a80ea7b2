/**
 * Plumbline on workerd. The resource API runs where the request is; watches run in Durable Objects, and so does what works
 * in the background.
 */

import type { ExecutionContext, ScheduledController } from 'cloudflare:workers';
import { edge, kindsOver, logger } from '#infra/cloudflare/installation.ts';
import { answerOperator } from '#infra/cloudflare/operations.ts';
import { answerResourceRequest } from '#infra/cloudflare/resource-api.ts';
import { shardOf } from '#infra/cloudflare/shards.ts';

export { Background } from '#infra/cloudflare/background.ts';
export { KafkaRelay } from '#infra/cloudflare/kafka-relay.ts';
export { WatchShard } from '#infra/cloudflare/watch-shard.ts';

const worker = {
  async fetch(request: Request, _env: unknown, context: ExecutionContext): Promise<Response> {
    const url = new URL(request.url);
    if (edge.opsHost !== undefined && url.host === edge.opsHost) return answerOperator(url, edge);
    if (url.pathname.startsWith('/watch/')) {
      return edge.watchShards.getByName(await shardOf(url, edge)).fetch(request);
    }
    const later = (work: Promise<unknown>): void =>
      context.waitUntil(
        work.catch((error: unknown) => logger.warn({ err: error }, 'what was left to do failed; cron does it')),
      );
    return answerResourceRequest(request, { kindsOver, logger, later });
  },

  async scheduled(_controller: ScheduledController): Promise<void> {
    await edge.background.getByName('background').scheduled();
  },
};

// workerd wants a default export.
// oxlint-disable-next-line import/no-default-export
export default worker;

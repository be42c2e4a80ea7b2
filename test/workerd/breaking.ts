/** In workerd: a request to a shard that names an object has this object evicted, as the platform does at any moment. */

import { Background } from '#infra/cloudflare/background.ts';
import { edge } from '#infra/cloudflare/installation.ts';
import { WatchShard } from '#infra/cloudflare/watch-shard.ts';
import { BREAK } from '#test/workerd/break-header.ts';

interface Breakable {
  readonly ctx: { abort(reason: string): never };
}

interface BreakableStub {
  breakOff(): Promise<void>;
}

const fetchOf: WatchShard['fetch'] = Reflect.get(WatchShard.prototype, 'fetch');
WatchShard.prototype.fetch = async function fetch(this: WatchShard, request: Request): Promise<Response> {
  const wanted = request.headers.get(BREAK);
  if (wanted === 'shard') (this as unknown as Breakable).ctx.abort('broken off by a test');
  if (wanted === 'background') {
    const stub = edge.background() as unknown as BreakableStub;
    await stub.breakOff().catch(() => undefined);
    return new Response('broken');
  }
  return fetchOf.call(this, request);
};

Object.assign(Background.prototype, {
  async breakOff(this: Breakable): Promise<void> {
    this.ctx.abort('broken off by a test');
  },
});

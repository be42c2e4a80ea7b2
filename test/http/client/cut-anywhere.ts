import { expect, test } from 'vitest';
import { storyOf, useTaking } from '#test/http/client/world.ts';
import { createWidget, useWorld } from '#test/http/resource-api/world.ts';
import type { OpenTarget } from '#test/http/target.ts';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

const NAMES = ['one', 'two', 'three', 'four', 'five'];
const AT_ONCE = 4;

export function cutAnywhere(open: OpenTarget): void {
  const world = useWorld(open);
  const taking = useTaking(world);

  /** Watches all five events over a connection that is cut behind so many bytes of the answer. Gives how many there were. */
  async function watchCutAt(position: number): Promise<number> {
    let passed = 0;
    let isCut = false;
    const { hostname, port } = new URL(world.target.baseUrl);
    const proxy: TcpProxy = await startTcpProxy({
      host: hostname,
      port: Number(port),
      answers: (toClient) => (bytes) => {
        if (isCut) {
          toClient(bytes);
          return;
        }
        toClient(bytes.subarray(0, position - passed));
        passed += bytes.length;
        if (passed < position) return;
        isCut = true;
        // What was passed is on its way.
        setImmediate(() => proxy.cut());
      },
    });
    const taken = await taking({
      url: `http://127.0.0.1:${proxy.port}`,
      tenants: [world.tenant],
      from: 'earliest',
      retry: { minMs: 1, maxMs: 1, steadyMs: 0 },
    });
    await taken.until((item) => item.type === 'ADDED' && item.object.metadata.name === 'five');
    await taken.stop();
    await proxy.stop();
    expect(storyOf(taken), `cut behind ${position} bytes`).toEqual(NAMES.map((name) => `ADDED ${name}`));
    return passed;
  }

  test('a watch that is cut behind any byte of its answer misses and repeats nothing', async () => {
    for (const name of NAMES) await createWidget(world, { name });
    const length = await watchCutAt(Infinity);
    expect(length).toBeGreaterThan(1_000);
    let next = 1;
    async function goOn(): Promise<void> {
      for (let position = next; position < length; position = next) {
        next += 1;
        await watchCutAt(position);
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, goOn));
  }, 120_000);
}

import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { brokerIds } from '#infra/kafka/ready-probe.ts';
import { type Child, startChild } from '#test/support/child.ts';
import { gone, isRunning } from '#test/support/embedded.ts';
import { describeKafka } from '#test/support/kafka.ts';
import { FOLDER_PREFIX } from '#test/support/kafka-of-run.ts';
import { makeOwnFolder } from '#test/support/leftovers.ts';

let dataDir: string;
let children: Child[];

beforeEach(async () => {
  dataDir = await makeOwnFolder(FOLDER_PREFIX);
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(children.map((child) => child.exit));
  await rm(dataDir, { recursive: true, maxRetries: 10 });
});

function script(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Child {
  const child = startChild('infra/kafka/main.ts', args, { env: { DATA_DIR: dataDir, KAFKA_PORT: '0', ...env } });
  children.push(child);
  return child;
}

/** All that it printed until it told where it listens, or ended. */
async function greeting(child: Child): Promise<string> {
  const lines: string[] = [];
  for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
    lines.push(line);
    if (line.includes('EVENT_LOG=')) break;
  }
  return lines.join('\n');
}

function portIn(text: string): number {
  return Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
}

async function brokerPid(): Promise<number> {
  return Number(await readFile(join(dataDir, 'kafka', 'node-1', 'kafka.pid'), 'utf8'));
}

describeKafka('npm run kafka', () => {
  test('tells where it listens and what to do next, refuses a second one, and ends in order', async () => {
    const first = script();
    const said = await greeting(first);
    const port = portIn(said);
    expect(said).toBe(
      [
        `Apache Kafka 4.3.1 listens on 127.0.0.1:${port}; its data lie in ${dataDir}/kafka. Ctrl-C stops it.`,
        '',
        '# Plumbline on it, in another terminal:',
        `DATA_DIR=${dataDir} EVENT_LOG=kafka KAFKA_BROKERS=127.0.0.1:${port} npm start`,
      ].join('\n'),
    );
    expect(await brokerIds(port)).toEqual([1]);
    expect(await script().exit).toEqual({
      code: 1,
      signal: null,
      errors: `${dataDir}/kafka is in use by process ${first.pid}; stop that one, or give this one another DATA_DIR\n`,
    });
    const pid = await brokerPid();
    first.kill('SIGTERM');
    expect(await first.exit).toEqual({ code: 0, signal: null, errors: '' });
    expect(await isRunning(pid)).toBe(false);
  });

  test('refuses a port that is taken, and says how to give another', async () => {
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen({ host: '127.0.0.1', port: 0 }, resolve));
    const { port } = stranger.address() as AddressInfo;
    const { code, errors } = await script([], { KAFKA_PORT: String(port) }).exit;
    stranger.close();
    expect({ code, errors }).toEqual({
      code: 1,
      errors: `port ${port} of 127.0.0.1 is in use by another process; stop that process, or give Kafka another port (KAFKA_PORT)\n`,
    });
  });

  test('ends when Kafka ends by itself, and says where its log is', async () => {
    const child = script();
    await greeting(child);
    process.kill(await brokerPid(), 'SIGKILL');
    const { code, errors } = await child.exit;
    expect(code).toBe(1);
    expect(errors).toMatch(/^Kafka node 1 ended by itself \(SIGKILL\); its log is .*node-1\/kafka\.log\n$/);
  });

  test('can be told to stop before it is ready, and leaves nothing running', async () => {
    const child = script();
    const pid = await expect
      .poll(() => brokerPid().catch(() => 0), { timeout: 20_000 })
      .toBeGreaterThan(0)
      .then(brokerPid);
    child.kill('SIGINT');
    expect(await child.exit).toEqual({ code: 0, signal: null, errors: '' });
    await gone(pid);
  });

  test.each([
    [['--nodes', '2'], {}, '--nodes is "2"; allowed: 1 or 3'],
    [['--topics'], {}, "Unknown option '--topics'"],
    [['now'], {}, "Unexpected argument 'now'"],
    [[], { KAFKA_PORT: 'ten' }, 'KAFKA_PORT is "ten"; allowed: an integer from 0 to 65535'],
    [['--nodes', '3'], { KAFKA_PORT: '65534' }, 'KAFKA_PORT is "65534"; allowed: an integer from 0 to 65533'],
  ])('refuses %j with %j, and shows how it is used', async (args, env, problem) => {
    const { code, errors } = await script(args, env).exit;
    expect(code).toBe(1);
    expect(errors).toContain(problem);
    expect(errors).toContain('\nusage: npm run kafka [-- --nodes 3]\n');
  });
});

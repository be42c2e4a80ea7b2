/** Two servers on one database with the same keys, killed and frozen one at a time. */

import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause } from '#loop/pause.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import type { Random } from '#test/support/random.ts';

export interface Servers {
  readonly tally: { killed: number; frozen: number };
  addresses(): readonly string[];
  /** One that is at work. */
  any(): LocalInstance;
  /** Until the signal aborts; then both are at work. `onMove` is called when one is elsewhere. */
  harass(random: Random, signal: AbortSignal, onMove: () => void): Promise<void>;
  stop(): Promise<void>;
}

/** Longer than a member's lease. */
const FREEZE_MS = [7_000, 9_000] as const;
const PAUSE_MS = [3_000, 7_000] as const;

export async function startServers(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<Servers> {
  const home = await mkdtemp(join(tmpdir(), 'plumbline-groups-'));
  const dataDirs = [join(home, 'one'), join(home, 'two')];
  const start = (dataDir: string): Promise<LocalInstance> => startLocalInstance({ databaseUrl, dataDir, env });
  const [one = '', two = ''] = dataDirs;
  const first = await start(one);
  await cp(join(one, 'keys'), join(two, 'keys'), { recursive: true });
  const servers = [first, await start(two)];
  const tally = { killed: 0, frozen: 0 };
  return { tally, addresses, any, harass, stop };

  function addresses(): readonly string[] {
    return servers.map(({ baseUrl }) => baseUrl);
  }

  function any(): LocalInstance {
    const [server] = servers;
    if (!server) throw new Error('there is no server');
    return server;
  }

  async function harass(random: Random, signal: AbortSignal, onMove: () => void): Promise<void> {
    for (let kills = random.chance(0.5); ; kills = !kills) {
      await pause(random.int(...PAUSE_MS), signal);
      if (signal.aborted) return;
      const index = random.int(0, servers.length - 1);
      const server = servers[index];
      const dataDir = dataDirs[index];
      if (!server || dataDir === undefined) throw new Error(`there is no server ${index}`);
      if (kills) {
        tally.killed += 1;
        server.process.kill('SIGKILL');
        await server.process.exit;
        servers[index] = await start(dataDir);
        onMove();
      } else {
        tally.frozen += 1;
        server.process.kill('SIGSTOP');
        await pause(random.int(...FREEZE_MS), signal);
        server.process.kill('SIGCONT');
      }
    }
  }

  async function stop(): Promise<void> {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(home, { recursive: true });
  }
}

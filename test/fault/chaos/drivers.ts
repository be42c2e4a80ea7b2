/** Three drivers, which are killed and frozen at random moments, and what they tell. */

import { pause } from '#loop/pause.ts';
import { LEASE_MS, type Addresses } from '#test/fault/chaos/composition.ts';
import { type Child, startChild } from '#test/support/child.ts';
import type { Random } from '#test/support/random.ts';

const DRIVERS = 3;
const LONGEST_LIFE_MS = 4_000;
const FREEZES = 0.5;
/** Of freezes: longer than the 25 s after which the server ends the sessions of a silent process. */
const LONG_FREEZES = 0.15;

/** Times in milliseconds since the epoch. */
export interface Freeze {
  /** The process, as it is named in the trail. */
  readonly holder: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Tally {
  killed: number;
  readonly freezes: Freeze[];
  /** Passes by controller and result. */
  readonly passes: Map<string, number>;
  /** What went wrong with reconciling itself, and how often. */
  readonly errors: Map<string, number>;
  /** What was logged, and how often. */
  readonly logged: Map<string, number>;
  /** Drivers that ended by themselves, and why. */
  readonly deaths: string[];
}

export interface Drivers {
  readonly tally: Tally;
  /** Kills and freezes until the signal aborts; then all of them run. */
  harass(random: Random, signal: AbortSignal): Promise<void>;
  /** Asks them to stop. */
  stop(): Promise<void>;
}

/** Resolves when they are at work. */
export async function startDrivers({ databaseUrl, serverUrl, trailUrl }: Addresses): Promise<Drivers> {
  const tally: Tally = {
    killed: 0,
    freezes: [],
    passes: new Map(),
    errors: new Map(),
    logged: new Map(),
    deaths: [],
  };
  const doomed = new WeakSet<Child>();
  const holders = new WeakMap<Child, string>();
  const drivers = await Promise.all(Array.from({ length: DRIVERS }, startDriver));

  return {
    tally,
    async harass(random, signal) {
      await Promise.all(drivers.map((_, index) => harassOne(index, random.fork(), signal)));
    },
    async stop() {
      for (const driver of drivers) {
        doomed.add(driver);
        driver.kill('SIGCONT');
        driver.kill('SIGTERM');
      }
      await Promise.all(drivers.map(({ exit }) => exit));
    },
  };

  async function harassOne(index: number, random: Random, signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(random.int(200, LONGEST_LIFE_MS), signal);
      const driver = drivers[index];
      if (!driver || signal.aborted) return;
      if (random.chance(FREEZES)) await freeze(driver, random, signal);
      else drivers[index] = await replace(driver);
    }
  }

  async function freeze(driver: Child, random: Random, signal: AbortSignal): Promise<void> {
    const fromMs = Date.now();
    driver.kill('SIGSTOP');
    const isLong = random.chance(LONG_FREEZES);
    await pause(isLong ? random.int(27_000, 32_000) : random.int(LEASE_MS + 300, LEASE_MS * 2.5), signal);
    driver.kill('SIGCONT');
    tally.freezes.push({ holder: holders.get(driver) ?? '', fromMs, toMs: Date.now() });
  }

  async function replace(driver: Child): Promise<Child> {
    tally.killed += 1;
    doomed.add(driver);
    driver.kill('SIGKILL');
    await driver.exit;
    return startDriver();
  }

  async function startDriver(): Promise<Child> {
    const child = startChild('test/fault/chaos/driver-process.ts', [databaseUrl, serverUrl, trailUrl]);
    void child.exit.then(({ code, signal, errors }) => {
      if (!doomed.has(child)) tally.deaths.push(`a driver ended with code ${code}, signal ${signal}: ${errors}`);
    });
    await new Promise<void>((resolve) => {
      void listen(child, resolve);
    });
    return child;
  }

  /** @param onReady is called when it is at work, or has ended. */
  async function listen(child: Child, onReady: () => void): Promise<void> {
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) {
      const said: Said | undefined = parse(line);
      if (said?.ready !== undefined) {
        holders.set(child, said.ready);
        onReady();
      }
      if (said?.pass !== undefined) count(tally.passes, `${said.pass} ${said.result}`);
      else if (said?.error !== undefined) count(tally.errors, generalised(said.error));
      else if (said?.msg !== undefined) count(tally.logged, said.msg);
    }
    onReady();
  }
}

interface Said {
  readonly ready?: string;
  readonly pass?: string;
  readonly result?: string;
  readonly error?: string;
  readonly msg?: string;
}

/** The last line of one that was killed may be cut. */
function parse(line: string): Said | undefined {
  try {
    return JSON.parse(line) as Said;
  } catch {
    return undefined;
  }
}

export function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Messages that differ in names and numbers only are one kind. */
export function generalised(message: string): string {
  return message
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uid>')
    .replaceAll(/"[^"]*"/g, '"…"')
    .replaceAll(/\d+/g, '#');
}

/** Members that come, go, die and freeze at random moments. */

import { join } from 'node:path';
import { pause } from '#loop/pause.ts';
import { type Child, startChild } from '#test/support/child.ts';
import type { Random } from '#test/support/random.ts';

export interface MembersOptions {
  /** Where each writes down what it does. */
  readonly records: string;
  readonly query: string;
  readonly token: string;
  readonly random: Random;
}

export interface MembersTally {
  joined: number;
  left: number;
  killed: number;
  frozen: number;
  /** Ended by themselves, and why. */
  readonly deaths: string[];
}

export interface Members {
  readonly tally: MembersTally;
  /** Where the servers are now. */
  tell(servers: readonly string[]): void;
  /** Until the signal aborts; then some are at work, and none is frozen. */
  harass(signal: AbortSignal): Promise<void>;
  /** All leave. */
  stop(): Promise<void>;
}

const FEWEST = 2;
const MOST = 6;
const LONGEST_PAUSE_MS = 900;
/** Longer than the wait for acks of the group. */
const FREEZE_MS = [2_500, 5_000] as const;

export function startMembers({ records, query, token, random }: MembersOptions): Members {
  const tally: MembersTally = { joined: 0, left: 0, killed: 0, frozen: 0, deaths: [] };
  const members = new Set<Child>();
  const doomed = new WeakSet<Child>();
  let servers: readonly string[] = [];
  return { tally, tell, harass, stop };

  function tell(addresses: readonly string[]): void {
    servers = addresses;
    for (const member of members) member.send(JSON.stringify(servers));
  }

  async function harass(signal: AbortSignal): Promise<void> {
    const thaws: Promise<void>[] = [];
    while (!signal.aborted) {
      if (members.size < FEWEST) join_();
      else if (members.size >= MOST) remove(random.pick(['leave', 'kill']));
      else act();
      await pause(random.int(50, LONGEST_PAUSE_MS), signal);
    }
    await Promise.all(thaws);
    while (members.size < FEWEST) join_();

    function act(): void {
      const chance = random.next();
      if (chance < 0.4) join_();
      else if (chance < 0.55) remove('leave');
      else if (chance < 0.75) remove('kill');
      else thaws.push(freeze(random.pick([...members]), signal));
    }
  }

  function join_(): void {
    tally.joined += 1;
    const file = join(records, `${tally.joined}.records`);
    const child = startChild('test/fault/groups/member-process.ts', [file, query, token]);
    members.add(child);
    child.send(JSON.stringify(servers));
    void child.exit.then(({ code, signal, errors }) => {
      members.delete(child);
      if (!doomed.has(child)) tally.deaths.push(`a member ended with code ${code}, signal ${signal}: ${errors}`);
    });
  }

  function remove(how: 'leave' | 'kill'): void {
    const member = random.pick([...members]);
    members.delete(member);
    doomed.add(member);
    tally[how === 'kill' ? 'killed' : 'left'] += 1;
    if (how === 'kill') member.kill('SIGKILL');
    else member.send('leave');
  }

  async function freeze(member: Child, signal: AbortSignal): Promise<void> {
    tally.frozen += 1;
    member.kill('SIGSTOP');
    await pause(random.int(...FREEZE_MS), signal);
    member.kill('SIGCONT');
  }

  async function stop(): Promise<void> {
    const last = [...members];
    for (const member of last) {
      doomed.add(member);
      member.kill('SIGCONT');
      member.send('leave');
    }
    await Promise.all(last.map(({ exit }) => exit));
  }
}

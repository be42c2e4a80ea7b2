/**
 * A consumer as a process of its own, to be killed and frozen: `member-process.ts <record file> <query> <token>`. Each
 * line of its input is the servers' addresses as JSON, or `leave`. It connects again and again, to any of them, and sends
 * its acks to any of them.
 */

import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AckResult } from '#core/ports/watch-groups.ts';
import { nowMs, openRecorder, type Sent } from '#test/fault/groups/records.ts';
import { verdictOn } from '#test/fault/groups/verdict.ts';
import { openSse, type SseEvent } from '#test/support/sse-client.ts';

interface Token {
  readonly token: string;
  readonly of: Omit<Sent, 'what' | 'atMs' | 'id'>;
}

const [, , file = '', query = '', token = ''] = process.argv;
const ANSWER_PATIENCE_MS = 2_500;
const CONNECT_PATIENCE_MS = 3_000;
const LONGEST_ACK_PAUSE_MS = 40;

const recorder = openRecorder(file);
let servers: readonly string[] = [];
let isLeaving = false;
/** What is to be sent, also of connections that have ended since: then it comes too late. */
const acks: Token[] = [];
const nacks: Token[] = [];
/** Lanes that begin anew after a nack or are stalled, with the fence that is over. */
const over = new Map<string, number>();
/** What came behind a nack. Once that is answered, it is acked all the same, which must be refused. */
const late: Token[] = [];
let leave = (): void => undefined;

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line !== 'leave') {
      servers = JSON.parse(line) as readonly string[];
      return;
    }
    isLeaving = true;
    leave();
  })
  .on('close', () => process.exit(1));
void sendAcks();
while (!isLeaving) {
  if (servers.length > 0)
    await connect().catch((error: unknown) => recorder.write({ what: 'ended', member: '', why: String(error) }));
  if (!isLeaving) await sleep(100 + Math.random() * 200);
}
recorder.close();
process.exit();

async function connect(): Promise<void> {
  let member = '';
  over.clear();
  late.length = 0;
  const aborter = new AbortController();
  const opening = openSse(`${anyServer()}/watch/v1/events?${query}`, { token, keep: false, onEvent: take });
  const timer = setTimeout(() => aborter.abort(), CONNECT_PATIENCE_MS);
  const client = await Promise.race([
    opening,
    new Promise<undefined>((resolve) => aborter.signal.addEventListener('abort', () => resolve(undefined))),
  ]).finally(() => clearTimeout(timer));
  if (!client) {
    void opening.then((late) => late.close()).catch(() => undefined);
    return;
  }
  leave = () => void client.close();
  const ended = await client.ended;
  recorder.write({ what: 'ended', member, why: ended?.message ?? 'the server ended it' });

  function take({ event, id, data }: SseEvent): void {
    if (event === 'READY') member = data.group.member;
    if (event === 'ERROR') recorder.write({ what: 'ended', member, why: data.message });
    if (id === undefined || !['ADDED', 'MODIFIED', 'DELETED'].includes(event)) return;
    const of = { member, lane: data.lane, fence: Number(data.fence), seq: Number(data.seq) };
    recorder.write({ what: 'delivered', atMs: nowMs(), ...of, uid: data.uid, attempt: data.attempt });
    if ((over.get(of.lane) ?? 0) >= of.fence) {
      late.push({ of, token: id });
      return;
    }
    const verdict = verdictOn(data.uid, of.seq, data.attempt);
    if (verdict === 'ack') acks.push({ of, token: id });
    else over.set(of.lane, of.fence);
    if (verdict === 'nack') nacks.push({ of, token: id });
  }
}

async function sendAcks(): Promise<void> {
  for (;;) {
    await sleep(Math.random() * LONGEST_ACK_PAUSE_MS);
    const [taken, refused] = [acks.splice(0, 500), nacks.splice(0, 500)];
    if (taken.length + refused.length === 0) continue;
    const sent = Math.random() < 0.2 ? taken : lastOfLanes(taken);
    const id = randomUUID();
    const atMs = nowMs();
    recorder.write(
      ...sent.map(({ of }) => ({ what: 'ack' as const, atMs, id, ...of })),
      ...refused.map(({ of }) => ({ what: 'nack' as const, atMs, id, ...of })),
    );
    // The next ones do not wait for a server that is frozen: acks are cumulative.
    void send(sent, refused).then((results) => {
      recorder.write({ what: 'answered', id, results });
      for (const [index, nack] of refused.entries()) {
        if (results?.[sent.length + index] === 'Acked') acks.push(...takeLate(nack));
      }
    });
  }
}

function takeLate({ of: { lane, fence } }: Token): Token[] {
  const taken = late.filter(({ of }) => of.lane === lane && of.fence === fence);
  late.splice(0, late.length, ...late.filter((each) => !taken.includes(each)));
  return taken;
}

async function send(sent: readonly Token[], refused: readonly Token[]): Promise<readonly AckResult[] | undefined> {
  try {
    const response = await fetch(`${anyServer()}/watch/v1/acks`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        acks: sent.map((each) => each.token),
        nacks: refused.map((each) => ({ token: each.token, delayMs: Math.random() < 0.5 ? 0 : 100 })),
      }),
      signal: AbortSignal.timeout(ANSWER_PATIENCE_MS),
    });
    const body = (await response.json()) as Answer;
    return (body.results ?? body.details?.results)?.map(({ status }) => status);
  } catch {
    return undefined;
  }
}

interface Answer {
  readonly results?: readonly { readonly status: AckResult }[];
  readonly details?: { readonly results?: readonly { readonly status: AckResult }[] };
}

function lastOfLanes(tokens: readonly Token[]): Token[] {
  return [...new Map(tokens.map((each) => [`${each.of.lane} ${each.of.fence}`, each])).values()];
}

function anyServer(): string {
  return servers[Math.floor(Math.random() * servers.length)] ?? '';
}

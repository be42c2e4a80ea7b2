/** A member of a group: its share of the changes, each handled and then confirmed. */

import { jitteredMs } from '#infra/client/backoff.ts';
import { type Connection, createCaller } from '#infra/client/caller.ts';
import { createAcks } from '#infra/client/group/acks.ts';
import { type Delivery, deliveryOf, type LaneFrame } from '#infra/client/group/delivery.ts';
import { createLanes } from '#infra/client/group/lanes.ts';
import { createResyncs } from '#infra/client/group/resyncs.ts';
import { pause } from '#loop/pause.ts';
import { type Selection, watchPath } from '#infra/client/selection.ts';
import { type Frame, type Mode, openAgain, type StreamOptions } from '#infra/client/stream.ts';

export interface HandlerContext {
  /** Aborts when the lane is not this member's any more: the change comes again, perhaps elsewhere at this very moment. */
  readonly signal: AbortSignal;
}

/** A handler has thrown. */
export interface Failure<Spec, Status> {
  readonly error: unknown;
  readonly delivery: Delivery<Spec, Status>;
  /** When it comes again, about, in milliseconds; its lane waits for it. Undefined: it becomes a dead letter. */
  readonly retryInMs: number | undefined;
}

export interface Membership {
  readonly name: string;
  readonly member: string;
  /** This member made the group. */
  readonly isNew: boolean;
  /** The group had been given up, since nobody came for long; its positions were lost then. */
  readonly droppedAt?: string;
}

export interface ConsumeOptions<Spec = Record<string, unknown>, Status = Record<string, unknown>>
  extends Connection, Selection, StreamOptions {
  /** A DNS label. All members select the same. */
  readonly group: string;
  /** Where a group begins that is new. @default earliest */
  readonly start?: 'earliest' | 'now';
  /**
   * How many unconfirmed changes a lane may have here, 1 to 1024. Together they must be handled within `ackWaitMs`.
   * @default 16
   */
  readonly window?: number;
  /** A member that leaves a change unconfirmed for longer loses its lanes. @default 30,000, by the server */
  readonly ackWaitMs?: number;
  /** A change that fails as often becomes a dead letter, and its lane goes on. @default 16, as the server's */
  readonly maxAttempts?: number;
  /** How many lanes are handled at once. @default 16 */
  readonly concurrency?: number;
  /** Handles one change; confirmed once it resolves. It may come more than once. */
  readonly handler: (delivery: Delivery<Spec, Status>, context: HandlerContext) => void | Promise<void>;
  /**
   * Changes of this tenant were lost to retention before they were handled: look at all its objects. Then it goes on. What
   * it throws ends the member, and another one is asked.
   */
  readonly onResync: (tenant: string) => void | Promise<void>;
  /** The tenant was deleted, and all its changes that came here are handled. */
  readonly onTenantGone?: (tenant: string) => void;
  /** At each connection. */
  readonly onJoin?: (membership: Membership) => void;
  readonly onFailure?: (failure: Failure<Spec, Status>) => void;
  /**
   * Ends it in peace: nothing more is begun, what runs is finished and confirmed, and others have the lanes at once.
   */
  readonly signal: AbortSignal;
}

/** Why the connection ends that nothing is wrong with. */
const DONE = Symbol('done');

const FLUSH_MS = 10_000;
/** Of a lane whose change was refused. */
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 300_000;
const DEFAULT_WINDOW = 16;
const DEFAULT_CONCURRENCY = 16;
/** The server's. */
const DEFAULT_MAX_ATTEMPTS = 16;

/**
 * Handles changes as a member of a group, until the signal aborts, or all `tenants` are gone. Those of one object come one after the other, here or
 * at another member, and nothing is skipped. What a handler throws delays the lane (1 s, doubling to 5 minutes, with
 * jitter), and the change comes again.
 * @throws {ProtocolError} @throws {StatusError} as `watch`; `Conflict` while members select something else.
 */
export async function consume<Spec = Record<string, unknown>, Status = Record<string, unknown>>(
  options: ConsumeOptions<Spec, Status>,
): Promise<void> {
  const { signal, handler, onResync, onFailure, maxAttempts = DEFAULT_MAX_ATTEMPTS, retry, onRetry } = options;
  if (signal.aborted) return;
  const caller = createCaller(options);
  const connection = new AbortController();
  const fail = (error: unknown): void => connection.abort(error);
  // Of work only what a callback throws of its own.
  const lanes = createLanes(options.concurrency ?? DEFAULT_CONCURRENCY, fail);
  const acks = createAcks({
    caller,
    retry,
    onRetry,
    onLost: lanes.lose,
    onFailure: fail,
    signal: connection.signal,
  });
  const resync = createResyncs(onResync);
  const remaining = new Set(options.tenants);
  const leave = (): void => void finish();
  signal.addEventListener('abort', leave, { once: true });
  try {
    const frames = openAgain({ ...options, caller, request, signal: connection.signal, onEnd });
    for await (const frame of frames) take(frame);
  } finally {
    signal.removeEventListener('abort', leave);
    lanes.loseAll();
    await lanes.close();
    connection.abort();
  }
  if (connection.signal.reason !== DONE) throw connection.signal.reason;

  function request(): { readonly path: string; readonly mode: Mode } {
    const { group, start, window = DEFAULT_WINDOW, ackWaitMs } = options;
    const parameters = { group, start, window, ackWaitMs, maxAttempts: options.maxAttempts };
    return { path: watchPath(options, parameters), mode: 'group' };
  }

  function onEnd(): void {
    lanes.loseAll();
    // All is confirmed, and the server would refuse to go on.
    if (options.tenants && remaining.size === 0) connection.abort(DONE);
  }

  async function finish(): Promise<void> {
    await lanes.close();
    // A server that is away must not hold up an end: what is not confirmed comes again.
    await Promise.race([acks.flush(), pause(FLUSH_MS, connection.signal)]);
    connection.abort(DONE);
  }

  function take(frame: Frame): void {
    switch (frame.type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        handle(deliveryOf<Spec, Status>(frame));
        break;
      case 'BOOKMARK':
        hear(frame);
        break;
      case 'READY':
        options.onJoin?.((frame.data as { readonly group: Membership }).group);
        break;
      default:
    }
  }

  function handle(delivery: LaneFrame & Delivery<Spec, Status>): void {
    lanes.push({
      lane: delivery.lane,
      fence: delivery.fence,
      isDeadLetter: delivery.isDeadLetter,
      async run(lost) {
        try {
          await handler(delivery, { signal: lost });
        } catch (error) {
          failed(delivery, error);
          return;
        }
        acks.ack(delivery);
      },
    });
  }

  function failed(delivery: LaneFrame & Delivery<Spec, Status>, error: unknown): void {
    const delayMs = Math.round(jitteredMs(delivery.attempt - 1, FIRST_DELAY_MS, LONGEST_DELAY_MS));
    acks.nack(delivery, delayMs);
    // What is behind it on its lane comes again with it.
    if (!delivery.isDeadLetter) lanes.lose(delivery);
    const isDead = delivery.isDeadLetter || delivery.attempt >= maxAttempts;
    onFailure?.({ error, delivery, retryInMs: isDead ? undefined : delayMs });
  }

  function hear({ id = '', data }: Frame): void {
    const word = data as { reason: string; tenant?: string; lane?: string; fence?: string };
    const { reason, tenant = '', lane = '', fence = '0' } = word;
    if (reason === 'TenantGone') {
      remaining.delete(tenant);
      options.onTenantGone?.(tenant);
    }
    if (reason !== 'ResyncRequired') return;
    const frame: LaneFrame = { lane, fence: BigInt(fence), token: id, isDeadLetter: false };
    lanes.push({
      ...frame,
      async run() {
        await resync(tenant);
        acks.ack(frame);
      },
    });
  }
}

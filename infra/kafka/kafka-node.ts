/** One node of a cluster: it is started, killed, frozen and started again, always on its own folder and ports. */

import { join } from 'node:path';
import {
  type BrokerExit,
  type BrokerProcess,
  LOG_FILE,
  type KafkaPrograms,
  startBrokerProcess,
} from '#infra/kafka/broker-process.ts';
import type { NodeAddress } from '#infra/kafka/properties.ts';
import { waitForBrokers } from '#infra/kafka/ready-probe.ts';
import { readLogSince, rotateLog, sizeOf } from '#infra/_shared/postgres/log-file.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

export interface KafkaNode {
  /** From 1. */
  readonly id: number;
  /** For clients, on 127.0.0.1. */
  readonly port: number;
  /** Of the run that is current, or of the last one. */
  readonly pid: number;
  readonly isRunning: boolean;
  readonly logFile: string;
  /**
   * Starts it again on its data, and answers when it serves: 3 to 4 s after `kill9`, 1 s after `stop`. In a cluster of
   * three it cannot serve until another one runs too: start them at once.
   * @throws {StartError} with the last lines of its log when it does not come up.
   */
  start(): Promise<void>;
  /** SIGKILL. Answers when it is gone. Its data stay: what it wrote is the kernel's. */
  kill9(): Promise<void>;
  /** SIGSTOP: its connections stay, and nobody answers. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** SIGTERM, also to one that is frozen; SIGKILL when that takes longer. Answers when it is gone. @default 15 s */
  stop(patienceMs?: number): Promise<void>;
}

export interface KafkaNodeOptions {
  readonly programs: KafkaPrograms;
  readonly address: NodeAddress;
  /** Prepared by `prepareNode`. */
  readonly directory: string;
  readonly javaOptions: readonly string[];
  /** Called when it ended without having been told to, with what it said. */
  readonly onUnexpectedExit: (exit: BrokerExit, said: string) => void;
}

/** A node whose first start is the caller's to wait for in its own way. */
export interface StartableNode extends KafkaNode {
  /** Answers when it knows this many brokers at work, itself among them. */
  startAmong(count: number): Promise<void>;
}

const READY_TIMEOUT_MS = 60_000;
/** A quiet node ends within 0.6 s. */
const STOP_PATIENCE_MS = 15_000;

export function kafkaNode(options: KafkaNodeOptions): StartableNode {
  const { address, directory } = options;
  const logFile = join(directory, LOG_FILE);
  let broker: BrokerProcess | undefined;
  // The run that was told to end.
  let dismissed: BrokerProcess | undefined;

  return {
    id: address.id,
    port: address.port,
    logFile,
    get pid() {
      return broker?.pid ?? 0;
    },
    get isRunning() {
      return isRunning();
    },
    start: () => startAmong(1),
    startAmong,
    kill9: () => end(kill),
    freeze: () => broker?.kill('SIGSTOP'),
    thaw: () => broker?.kill('SIGCONT'),
    stop: (patienceMs = STOP_PATIENCE_MS) => end((running) => running.stop(patienceMs)),
  };

  function isRunning(): boolean {
    return broker !== undefined && !broker.gone.aborted;
  }

  async function startAmong(count: number): Promise<void> {
    if (isRunning()) throw new Error(`node ${address.id} runs already`);
    await rotateLog(logFile);
    const logOffset = await sizeOf(logFile);
    const current = await startBrokerProcess(options);
    broker = current;
    const patience = AbortSignal.any([current.gone, AbortSignal.timeout(READY_TIMEOUT_MS)]);
    const isEnough = (ids: readonly number[]): boolean => ids.length >= count && ids.includes(address.id);
    if (await waitForBrokers(address.internalPort, isEnough, patience)) {
      void watch(current, logOffset);
      return;
    }
    const hasEnded = current.gone.aborted;
    await end(kill);
    const problem = hasEnded ? 'ended while it started' : `does not serve within ${READY_TIMEOUT_MS / 1000} s`;
    throw new StartError(
      `Kafka ${problem}: ${(await readLogSince(logFile, logOffset)) || 'it says nothing'} (${logFile})`,
    );
  }

  async function end(how: (running: BrokerProcess) => Promise<void>): Promise<void> {
    if (!broker || !isRunning()) return;
    dismissed = broker;
    await how(broker);
  }

  async function watch(current: BrokerProcess, logOffset: number): Promise<void> {
    const exit = await current.exit;
    if (dismissed !== current) options.onUnexpectedExit(exit, await readLogSince(logFile, logOffset));
  }
}

async function kill(broker: BrokerProcess): Promise<void> {
  broker.kill('SIGKILL');
  await broker.exit;
}

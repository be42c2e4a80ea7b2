/** What members of the group chaos write down, each into a file of its own: before they act, so that kill -9 loses nothing. */

import { closeSync, openSync, writeSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AckResult } from '#core/ports/watch-groups.ts';

/** An event came. Times are milliseconds of the machine's clock that only runs forward, the same for all processes. */
export interface Delivered {
  readonly what: 'delivered';
  readonly atMs: number;
  /** One connection. */
  readonly member: string;
  readonly lane: string;
  readonly fence: number;
  readonly seq: number;
  readonly uid: string;
  readonly attempt: number;
}

/** A token is about to be sent. */
export interface Sent {
  readonly what: 'ack' | 'nack';
  readonly atMs: number;
  readonly id: string;
  readonly member: string;
  readonly lane: string;
  readonly fence: number;
  readonly seq: number;
}

/** What became of the tokens with this id; without an answer, nobody knows. */
export interface Answered {
  readonly what: 'answered';
  readonly id: string;
  readonly results: readonly AckResult[] | undefined;
}

export interface Ended {
  readonly what: 'ended';
  readonly member: string;
  readonly why: string;
}

export type RecordLine = Delivered | Sent | Answered | Ended;

export interface Recorder {
  write(...lines: readonly RecordLine[]): void;
  close(): void;
}

export function openRecorder(file: string): Recorder {
  const fd = openSync(file, 'a');
  return {
    write: (...lines) => void writeSync(fd, lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
    close: () => closeSync(fd),
  };
}

/** Of all members. The last line of one that was killed may be cut. */
export async function readRecords(directory: string): Promise<RecordLine[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.records'));
  const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
  return texts.flatMap((text) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as RecordLine),
  );
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

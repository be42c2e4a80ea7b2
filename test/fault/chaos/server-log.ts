/** The log of the server with the managed databases: an audit trail of what each pass defined, and of what was refused. */

import { count, generalised } from '#test/fault/chaos/drivers.ts';
import { HAND } from '#test/fault/chaos/world.ts';

export interface ServerLogFindings {
  /** Statements of passes that define something. */
  readonly definitions: number;
  /** Passes that came after a later pass of the same object. */
  readonly stepsBack: readonly string[];
  /** Errors of others than who acted by hand, by kind. */
  readonly errors: ReadonlyMap<string, number>;
}

/** What happens when processes are killed and frozen and people interfere, and why that is harmless. */
export const EXPLAINED: readonly RegExp[] = [
  // The session of a frozen process, ended by the server.
  /^terminating connection due to (idle-session|idle-in-transaction) timeout/,
  // DROP DATABASE … WITH (FORCE), by a pass or by hand, ends sessions within.
  /^terminating connection due to administrator command/,
  // The server's own, which gives way to both.
  /^(terminating autovacuum process|canceling autovacuum task)/,
  // A process that was killed gets no answer.
  /^connection to client lost/,
  // A pass that was told to end while it signed in.
  /^expected SASL response/,
  // Bindings of one subject wait for their turn, and give way.
  /^canceling statement due to (lock|statement) timeout/,
  // The same, when a superuser is within, by hand.
  /^permission denied to terminate process/,
  // The same, when a pass was about to enter it, or was in it.
  /^database "…" (does not exist|is being accessed by other users)/,
  // It is being dropped by hand: invalid at once, and there until its files are gone.
  /^cannot (alter|connect to) invalid database/,
  // Dropped by hand in the middle of a pass.
  /^role "…" does not exist/,
  // Passes enter with the rights of the owner, which were taken from it by hand.
  /^permission denied for database/,
  // Rights that are changed by hand and by a pass at the same moment.
  /^tuple concurrently (updated|deleted)/,
  // Of several bindings that go, the last one drops the subject's role: each tries.
  /^role "…" cannot be dropped because some objects depend on it/,
];

const LINE = /^\S+ \S+ \S+ \[\d+\] app=(.*?) (LOG|ERROR|FATAL|PANIC):  (.*)$/gm;
const DEFINITION = /^statement: /;
const PASS = /^plumbline (\S+) (\d+)$/;

export function readServerLog(text: string): ServerLogFindings {
  const newest = new Map<string, bigint>();
  const stepsBack: string[] = [];
  const errors = new Map<string, number>();
  let definitions = 0;
  for (const [, application = '', level = '', message = ''] of text.matchAll(LINE)) {
    if (application === HAND) continue;
    if (level !== 'LOG') count(errors, generalised(message));
    const [, uid, tokenText] = PASS.exec(application) ?? [];
    if (uid === undefined || tokenText === undefined || !DEFINITION.test(message)) continue;
    definitions += 1;
    const token = BigInt(tokenText);
    const seen = newest.get(uid) ?? 0n;
    if (token < seen) stepsBack.push(`pass ${token} of ${uid} after pass ${seen}: ${message}`);
    else newest.set(uid, token);
  }
  return { definitions, stepsBack, errors };
}

/** Kinds of errors that nothing here explains. */
export function unexplained(errors: ReadonlyMap<string, number>): readonly string[] {
  return [...errors.keys()].filter((message) => !EXPLAINED.some((known) => known.test(message)));
}

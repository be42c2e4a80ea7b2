/** A running instance, and the log that was switched under it: what it reads and writes is no longer where events are. */

import type { Sql } from '#adapters/postgres/client.ts';
import { type LogName, readLogChoice } from '#adapters/postgres/log-choice.ts';
import type { StreamDirectory } from '#core/ports/streams.ts';

export interface LogSwitchDeps {
  readonly sql: Sql;
  readonly streams: StreamDirectory;
  readonly log: LogName;
  readonly onSwitched: (now: LogName) => void;
}

/** Tells once, within seconds, that the installation has another log than this instance; until the signal aborts. */
export function watchLogChoice({ sql, streams, log, onSwitched }: LogSwitchDeps, signal: AbortSignal): void {
  const watching = new AbortController();
  let installation: string | undefined;
  signal.addEventListener('abort', () => watching.abort(), { once: true });
  streams.onChange(() => void look(), watching.signal);

  async function look(): Promise<void> {
    const choice = await readLogChoice(sql).catch(() => undefined);
    if (choice === undefined || watching.signal.aborted) return;
    installation ??= choice.installation;
    // There and back again, it is in other topics.
    if (choice.log === log && choice.installation === installation) return;
    watching.abort();
    onSwitched(choice.log);
  }
}

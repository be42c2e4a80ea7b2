/** The link of a process for all that is asked once: made when it is needed, given up when it is in doubt or idle. */

import { type Link, openLink } from '#adapters/kafka/client/link.ts';
import type { SessionDeps } from '#adapters/kafka/client/session.ts';
import { StatusError } from '#core/status-error.ts';

export interface LinkHolder {
  /** @throws what kafkajs throws, or `Late`; {StatusError} ServiceUnavailable once it is closed. */
  get(): Promise<Link>;
  /** It has failed: the next one is another. */
  drop(link: Link): void;
  close(): void;
}

/** Longer than any answer is waited for. */
const IDLE_MS = 60_000;
const FAILURE_MS = 250;

interface Held {
  readonly opening: Promise<Link>;
  /** Once it is open. */
  link?: Link;
}

export function holdLink(deps: SessionDeps): LinkHolder {
  let held: Held | undefined;
  let idle: NodeJS.Timeout | undefined;
  const lifetime = new AbortController();
  return { get, drop, close };

  async function get(): Promise<Link> {
    if (lifetime.signal.aborted) throw closed();
    const mine = (held ??= { opening: openLink(deps, lifetime.signal) });
    let link: Link;
    try {
      link = mine.link = await mine.opening;
    } catch (error) {
      // Those who come soon after share the failure: it may have taken seconds to find out.
      setTimeout(() => forget(mine), FAILURE_MS).unref();
      throw error;
    }
    clearTimeout(idle);
    idle = setTimeout(() => drop(link), IDLE_MS).unref();
    return link;
  }

  function drop(link: Link): void {
    link.end();
    if (held?.link === link) held = undefined;
  }

  function forget(failed: Held): void {
    if (held === failed) held = undefined;
  }

  function close(): void {
    lifetime.abort();
    clearTimeout(idle);
  }
}

function closed(): StatusError {
  return new StatusError('ServiceUnavailable', 'the event log is closed');
}

/** The link of a process for all that is asked once: made when it is needed, given up when it is in doubt or idle. */

import { type Link, openLink } from '#adapters/kafka/link.ts';
import type { SessionDeps } from '#adapters/kafka/session.ts';

export interface LinkHolder {
  /** @throws what kafkajs throws, or `Late`. */
  get(): Promise<Link>;
  /** It has failed: the next one is another. */
  drop(link: Link): void;
  close(): void;
}

const IDLE_MS = 30_000;
const FAILURE_MS = 250;

export function holdLink(deps: SessionDeps): LinkHolder {
  let opening: Promise<Link> | undefined;
  let held: Link | undefined;
  let idle: NodeJS.Timeout | undefined;
  let isClosed = false;
  return { get, drop, close };

  async function get(): Promise<Link> {
    const mine = (opening ??= openLink(deps));
    try {
      held = await mine;
    } catch (error) {
      // Those who come soon after share the failure: it may have taken seconds to find out.
      if (opening === mine) setTimeout(() => (opening = undefined), FAILURE_MS).unref();
      throw error;
    }
    const link = held;
    clearTimeout(idle);
    idle = setTimeout(() => drop(link), isClosed ? 0 : IDLE_MS).unref();
    return link;
  }

  function drop(link: Link): void {
    link.end();
    if (held === link) held = opening = undefined;
  }

  function close(): void {
    isClosed = true;
    clearTimeout(idle);
    if (held) drop(held);
  }
}

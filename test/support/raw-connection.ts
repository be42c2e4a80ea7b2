/** A TCP connection to an HTTP server, for what no HTTP client would send. */

import { once } from 'node:events';
import { connect } from 'node:net';

export interface RawConnection {
  write(text: string): void;
  /** Everything that came so far. */
  text(): string;
  /** Waits until the text or pattern has come behind what earlier calls waited for; gives what was passed. */
  until(pattern: string | RegExp): Promise<string>;
  /** Reads no more, until `resume`: what is sent waits in the network. */
  pause(): void;
  resume(): void;
  /** Settles when the server has ended the connection. */
  readonly ended: Promise<void>;
  /** Ends it in peace. */
  close(): void;
  /** Ends it by a reset. */
  destroy(): void;
}

const DEADLINE_MS = 10_000;

export async function openRawConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  let received = '';
  let passed = 0;
  socket.setEncoding('utf8').on('data', (text: string) => (received += text));
  socket.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    write: (text) => void socket.write(text),
    text: () => received,
    until,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    ended,
    close: () => void socket.end(),
    destroy: () => void socket.resetAndDestroy(),
  };

  async function until(pattern: string | RegExp): Promise<string> {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (;;) {
      const end = endOf(pattern, received, passed);
      if (end !== undefined) {
        const text = received.slice(passed, end);
        passed = end;
        return text;
      }
      await Promise.race([once(socket, 'data', { signal }), ended]).catch(() => undefined);
      if (signal.aborted || socket.destroyed) {
        throw new Error(
          `${String(pattern)} did not come; behind the last match: ${received.slice(passed, passed + 2000)}`,
        );
      }
    }
  }
}

function endOf(pattern: string | RegExp, text: string, from: number): number | undefined {
  const rest = text.slice(from);
  if (typeof pattern === 'string') {
    const index = rest.indexOf(pattern);
    return index === -1 ? undefined : from + index + pattern.length;
  }
  const match = pattern.exec(rest);
  return match ? from + match.index + match[0].length : undefined;
}

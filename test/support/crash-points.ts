/**
 * Ends the connections of a piece of work in its middle: the server has done what it was told, and whoever asked never
 * learns of it. Every answer of the server is such a point, one after the other.
 */

import { inject } from 'vitest';
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts';

export interface CrashPoints {
  readonly proxyPort: number;
  /** Cuts everything in place of the n-th answer from now on. */
  arm(answer: number): void;
  /** Whether it came to that since `arm`. */
  readonly hasCut: boolean;
  stop(): Promise<void>;
}

/** @see https://www.postgresql.org/docs/current/protocol-message-formats.html */
const AUTHENTICATION = 'R'.codePointAt(0);

/** Before the tests' PostgreSQL. */
export async function startCrashPoints(): Promise<CrashPoints> {
  const { hostname, port } = new URL(inject('postgresAdminUrl'));
  let left = Infinity;
  let hasCut = false;
  const proxy: TcpProxy = await startTcpProxy({
    host: hostname,
    port: Number(port),
    answers: (toClient) => (bytes) => {
      // Signing in is the same each time, and has changed nothing.
      if (bytes[0] === AUTHENTICATION || --left !== 0) return toClient(bytes);
      hasCut = true;
      proxy.cut();
    },
  });
  return {
    proxyPort: proxy.port,
    arm(answer) {
      left = answer;
      hasCut = false;
    },
    get hasCut() {
      return hasCut;
    },
    stop: () => proxy.stop(),
  };
}

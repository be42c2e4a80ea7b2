/** For `startTcpProxy`: lets so many bytes of what the server sends through, over all connections, and then cuts. */

import type { TcpProxyOptions } from '#test/support/tcp-proxy.ts';

export interface CutAfter {
  readonly answers: NonNullable<TcpProxyOptions['answers']>;
  /** What came through so far. */
  passedBytes(): number;
}

export function cutAfter(limit: number, cut: () => void): CutAfter {
  let passed = 0;
  return {
    answers: (toClient) => (bytes) => {
      const allowed = bytes.subarray(0, Math.max(0, limit - passed));
      passed += allowed.length;
      if (allowed.length > 0) toClient(allowed);
      if (passed === limit) cut();
    },
    passedBytes: () => passed,
  };
}

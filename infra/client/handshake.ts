/** The first event of a stream says what was granted: a server that has not understood the request does not say it. */

import { ProtocolError } from '#infra/client/errors.ts';

export const PROTOCOL = 1;

export type Mode = 'live' | 'resume' | 'initial' | 'group';

/** @throws {ProtocolError} when what was asked for is not what READY grants. */
export function assertReady(frame: { readonly type: string; readonly data: unknown }, asked: Mode): void {
  const granted = frame.type === 'READY' && typeof frame.data === 'object' ? frame.data : undefined;
  if (!granted) {
    throw new ProtocolError(
      `the stream begins with ${frame.type} instead of READY: this is no Plumbline, or an older one`,
    );
  }
  const protocol = 'protocol' in granted ? granted.protocol : undefined;
  if (protocol !== PROTOCOL) {
    throw new ProtocolError(`the server speaks protocol ${JSON.stringify(protocol)}, and this client ${PROTOCOL}`);
  }
  const mode = 'mode' in granted ? granted.mode : undefined;
  if (mode === asked) return;
  throw new ProtocolError(
    `asked for mode ${asked}, the server grants ${JSON.stringify(mode)}: going on would lose or repeat events`,
  );
}

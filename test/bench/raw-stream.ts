/** Streams as cheap as a client can have them: sockets that count bytes and frames, so that the server is measured. */

import { connect, type Socket } from 'node:net';

export interface RawStream {
  /** Blank lines seen: frames, the opening comment, the time to wait and READY among them. */
  readonly frames: number;
  readonly bytes: number;
  /** Reads no more. */
  pause(): void;
  close(): void;
}

/** Opens a stream and counts; resolves at its READY frame. `onFrames` is told of every read. */
export async function openRawStream(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  onFrames: (count: number, chunk: Buffer) => void = () => undefined,
): Promise<RawStream> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const state = { frames: 0, bytes: 0, pause: () => void socket.pause(), close: () => void socket.destroy() };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\n${lines.join('')}\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    let newlineBefore = false;
    socket.on('data', (chunk: Buffer) => {
      state.bytes += chunk.byteLength;
      let frames = 0;
      // A frame ends with an empty line: two line feeds, also where they lie in two reads.
      if (newlineBefore && chunk[0] === 10) frames += 1;
      for (let at = chunk.indexOf('\n\n'); at >= 0; at = chunk.indexOf('\n\n', at + 2)) frames += 1;
      newlineBefore = chunk.at(-1) === 10 && chunk.at(-2) !== 10;
      state.frames += frames;
      if (state.frames >= 3) resolve();
      if (frames > 0) onFrames(frames, chunk);
    });
  });
  return state;
}

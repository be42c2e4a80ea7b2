/**
 * Connections whose peer is gone without a word: a machine that lost its power, a router that forgot. What is sent to it
 * stays in the kernel, which tries again for a quarter of an hour before it tells (tcp(7), tcp_retries2); Node can set no
 * TCP_USER_TIMEOUT, and keep-alive probes pause while anything is unacknowledged. Linux shows what waits, and how often it
 * was sent again, in /proc/net/tcp (proc_net_tcp.txt); elsewhere the kernel's time stands.
 */

import { createReadStream } from 'node:fs';
import { type Socket, SocketAddress } from 'node:net';

/** A stream is written to every 15 s at the latest: with this and the limit below, a dead one is found within 50 s. */
const LOOK_MS = 8_000;
const LIMIT_MS = 20_000;
const FILES = ['/proc/net/tcp', '/proc/net/tcp6'];

/** Local port, remote address and port, retransmissions: of established connections (01) whose retransmission timer runs (01). */
const LINE = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) 01 \S+ 01:\S+ ([\dA-F]{8}) /;

/** By `peerKey`, how often the last unacknowledged data was sent again. */
export type Retransmissions = ReadonlyMap<string, number>;

export interface SilentPeersOptions {
  /** The connections that are open now. */
  readonly sockets: Iterable<Socket>;
  readonly port: number;
}

/**
 * Destroys each of the connections to whom the same data was sent again for 20 s, until stopped. Where there is no
 * /proc/net/tcp it does nothing.
 * @returns stops it.
 */
export function cutSilentPeers({ sockets, port }: SilentPeersOptions): () => void {
  let suspects = new Map<Socket, { readonly sinceMs: number; readonly times: number }>();
  let isLooking = false;
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  return () => clearInterval(timer);

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      judge(await readRetransmissions(port));
    } finally {
      isLooking = false;
    }
  }

  function judge(found: Retransmissions): void {
    const nowMs = performance.now();
    const before = suspects;
    suspects = new Map();
    if (found.size === 0) return;
    for (const socket of sockets) {
      const times = found.get(peerKey(socket.remoteAddress ?? '', socket.remotePort ?? 0));
      if (times === undefined) continue;
      const known = before.get(socket);
      // Fewer than before: something was acknowledged meanwhile.
      const sinceMs = known && known.times <= times ? known.sinceMs : nowMs;
      if (nowMs - sinceMs < LIMIT_MS) suspects.set(socket, { sinceMs, times });
      else socket.destroy();
    }
  }
}

async function readRetransmissions(port: number): Promise<Retransmissions> {
  const found = new Map<string, number>();
  for (const file of FILES) {
    let rest = '';
    try {
      // By pieces, between which others run: 10,000 connections are megabytes.
      for await (const piece of createReadStream(file, 'latin1')) {
        const text = rest + String(piece);
        const end = text.lastIndexOf('\n') + 1;
        rest = text.slice(end);
        for (const [key, times] of parseRetransmissions(text.slice(0, end), port)) found.set(key, times);
      }
    } catch {
      // No Linux, or no IPv6.
    }
  }
  return found;
}

/** Whole lines of /proc/net/tcp or tcp6, as far as they are of this local port. */
export function parseRetransmissions(lines: string, port: number): Retransmissions {
  const found = new Map<string, number>();
  for (const line of lines.split('\n')) {
    const [, local = '', address = '', remote = '', times = ''] = LINE.exec(line) ?? [];
    if (local === '' || Number.parseInt(local, 16) !== port || times === '00000000') continue;
    found.set(peerKey(addressOf(address), Number.parseInt(remote, 16)), Number.parseInt(times, 16));
  }
  return found;
}

function peerKey(address: string, port: number): string {
  return `${address} ${port}`;
}

/** The kernel prints words of four bytes, each in the order of the machine. @returns the address as `remoteAddress` has it. */
function addressOf(hex: string): string {
  const words = Uint32Array.from(hex.match(/.{8}/g) ?? [], (word) => Number.parseInt(word, 16));
  const bytes = new Uint8Array(words.buffer);
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, n) =>
    (((bytes[2 * n] ?? 0) << 8) | (bytes[2 * n + 1] ?? 0)).toString(16),
  );
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

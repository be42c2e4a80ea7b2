/** A box whose ring of keys changes while it is used. */

import { secretBox } from '#adapters/ciphers/secret-box.ts';
import { type CursorKeyRing, type CursorKeys, KEYS_READ_EVERY_MS } from '#core/ports/cursor-keys.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import { StatusError } from '#core/status-error.ts';

export interface RotatingBox extends SecretBox {
  /** Tells from now on of each change: another ring is in use, in the same breath. */
  follow(listener: (ring: CursorKeyRing, previous: CursorKeyRing) => void): void;
}

export interface RotatingBoxOptions {
  /** Another ring is in use, with other keys or another one that seals. */
  readonly onChange?: (ring: CursorKeyRing) => void;
  /** The keys could not be read: those from before stay. Told once until they can be read again. */
  readonly onError?: (error: unknown) => void;
}

/** Without a look at the keys for so long, a token that does not open may be of a key that is newer. */
const STALE_MS = 5 * KEYS_READ_EVERY_MS;

/**
 * Reads the keys, and again every KEYS_READ_EVERY_MS until the signal aborts. While they cannot be read, tokens that do
 * not open are refused with ServiceUnavailable, thrown by `open`: whether they are malformed is not known.
 * @throws what `keys.read()` throws at the first time.
 */
export async function rotatingBox(
  keys: CursorKeys,
  signal: AbortSignal,
  { onChange, onError }: RotatingBoxOptions = {},
): Promise<RotatingBox> {
  let current = await keys.read();
  let box = boxOf(current);
  const listeners: Parameters<RotatingBox['follow']>[0][] = [];
  let readAtMs = performance.now();
  let isFailing = false;
  const timer = setInterval(() => void look(), KEYS_READ_EVERY_MS);
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });

  return {
    seal: (plaintext, associatedData) => box.seal(plaintext, associatedData),
    open: (token, associatedData) => known(box.open(token, associatedData)),
    sealSeries(plaintext, associatedData) {
      let begunIn = box;
      let sealNumber = box.sealSeries(plaintext, associatedData);
      return (number) => {
        // A series is not sealed under an old key for longer than other tokens.
        if (begunIn !== box) {
          begunIn = box;
          sealNumber = box.sealSeries(plaintext, associatedData);
        }
        return sealNumber(number);
      };
    },
    openSeries: (token, associatedData) => known(box.openSeries(token, associatedData)),
    follow: (listener) => void listeners.push(listener),
  };

  function known<T>(opened: T | 'malformed'): T | 'malformed' {
    if (opened === 'malformed' && performance.now() - readAtMs > STALE_MS) throw unreadable();
    return opened;
  }

  async function look(): Promise<void> {
    try {
      const ring = await keys.read();
      if (nameOf(ring) !== nameOf(current)) {
        const previous = current;
        box = boxOf(ring);
        current = ring;
        onChange?.(ring);
        for (const listener of listeners) listener(ring, previous);
      }
      readAtMs = performance.now();
      isFailing = false;
    } catch (error) {
      if (!isFailing && !signal.aborted) onError?.(error);
      isFailing = true;
    }
  }
}

function boxOf({ keys, sealingId }: CursorKeyRing): SecretBox {
  return secretBox(keys, { sealingId });
}

/** Equal for equal rings. Ids are never used twice, but a file can be corrected. */
function nameOf({ keys, sealingId }: CursorKeyRing): string {
  return JSON.stringify([sealingId, ...keys.map(({ id, key }) => [id, [...key]])]);
}

function unreadable(): StatusError {
  return new StatusError('ServiceUnavailable', 'the keys of cursors cannot be read at present; try again', {
    details: { retryAfterSeconds: 2 },
  });
}

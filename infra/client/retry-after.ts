/** @see https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3 */

/** A proxy's mistake must not silence a client for days. */
const LONGEST_MS = 600_000;

/** What a `Retry-After` header asks for, ten minutes at most; 0 without one that can be read. */
export function retryAfterMs(header: string | null, nowMs: number): number {
  if (header === null) return 0;
  const text = header.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(waitMs) ? 0 : Math.min(LONGEST_MS, Math.max(0, waitMs));
}

/** gzip for large JSON answers, when the client asks for it. Event streams are never touched: it is put on lists alone. */

import { accepts } from 'hono/accepts';
import { compress } from 'hono/compress';
import type { MiddlewareHandler } from 'hono';

/**
 * As in Kubernetes: below it, the network takes less time than the compression.
 *
 * @see https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/responsewriters/writers.go
 */
export const COMPRESSION_THRESHOLD_BYTES: number = 128 * 1024;

/** Leaves alone whatever has a `Content-Length` below the threshold, and clients that would rather have it plain. */
export function compressLarge(): MiddlewareHandler {
  const gzip = compress({ encoding: 'gzip', threshold: COMPRESSION_THRESHOLD_BYTES });
  return async (c, next) => {
    const wanted = accepts(c, { header: 'Accept-Encoding', supports: ['gzip', 'identity'], default: 'gzip' });
    if (wanted !== 'identity') return gzip(c, next);
    await next();
    c.header('Vary', 'Accept-Encoding', { append: true });
  };
}

/** `Content-Length` for a text below the threshold; nothing for a larger one, which may be compressed on its way. */
export function lengthIfSmall(text: string): { readonly 'Content-Length'?: string } {
  if (text.length >= COMPRESSION_THRESHOLD_BYTES) return {};
  return { 'Content-Length': String(byteLength(text)) };
}

/** Of the text in UTF-8. */
export function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}

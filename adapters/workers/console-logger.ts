/** The log on workerd: one JSON object a line, which the platform keeps as fields. */

import type { Logger } from '#core/ports/logger.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
type Level = (typeof LEVELS)[number];

/** @param level the least that is written. */
export function consoleLogger(level: Level, bound: object = {}): Logger {
  const least = LEVELS.indexOf(level);
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => consoleLogger(level, { ...bound, ...fields }),
  };

  function write(own: 'debug' | 'info' | 'warn' | 'error'): (fields: object, message: string) => void {
    if (LEVELS.indexOf(own) < least) return () => undefined;
    return (fields, message) => {
      // oxlint-disable-next-line no-console
      console[own](JSON.stringify({ level: own, ...bound, ...fields, msg: message }, showErrors));
    };
  }
}

/** Tokens and cookies of requests; of errors of PostgreSQL what quotes a row, which may hold secrets. */
const SECRETS: ReadonlySet<string> = new Set(['authorization', 'cookie', 'set-cookie', 'detail']);

function showErrors(key: string, value: unknown): unknown {
  if (SECRETS.has(key.toLowerCase())) return '[redacted]';
  if (typeof value === 'bigint') return String(value);
  if (!(value instanceof Error)) return value;
  const { name, message, stack, cause } = value;
  const own = Object.fromEntries(Object.entries(value));
  return { ...own, name, message, stack, ...(cause !== undefined && { cause }) };
}

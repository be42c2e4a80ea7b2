/** What wrangler prints: lines of the worker's log, which go on with their level, and words of its own. */

import type { Logger } from 'pino';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** Colours, and what else moves a cursor. */
// oxlint-disable-next-line no-control-regex
const ESCAPES = /\u001b\[[0-9;]*m/g;
/** A worker's error that nobody caught. */
const TROUBLE = /\[ERROR\]|Uncaught/;

/** Logs one line. @param line perhaps with colours. */
export function logWorkerLine(line: string, logger: Logger): void {
  const text = line.replaceAll(ESCAPES, '');
  const entry = entryIn(text);
  if (entry) {
    const { level, msg, ...fields } = entry;
    logger[level]({ component: 'worker', ...fields }, msg);
  } else if (TROUBLE.test(text)) logger.error({ component: 'wrangler' }, text);
  else logger.debug({ component: 'wrangler' }, text);
}

interface Entry {
  readonly level: (typeof LEVELS)[number];
  readonly msg: string;
}

/** Wrangler puts a mark of its own before warnings and errors. */
function entryIn(text: string): Entry | undefined {
  const start = text.indexOf('{"level":');
  if (start < 0) return undefined;
  try {
    const parsed: unknown = JSON.parse(text.slice(start));
    return isEntry(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null || !('level' in value) || !('msg' in value)) return false;
  return LEVELS.some((level) => level === value.level) && typeof value.msg === 'string';
}

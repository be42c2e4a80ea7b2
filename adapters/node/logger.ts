/** Structured logs on standard output: JSON lines for machines, coloured lines for eyes. */

import { type DestinationStream, type Logger, destination, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';

export interface LoggerOptions {
  readonly format: 'pretty' | 'json';
  readonly level: string;
  /** @default standard output, written synchronously, so that the last line before an exit is not lost */
  readonly stream?: DestinationStream;
}

// Bearer tokens and cookies, however deep a request was logged. pino's paths have no "at any depth".
const SECRET_HEADERS = ['authorization', 'cookie', '["set-cookie"]'];
const HEADER_PARENTS = ['', 'headers.', '*.', '*.headers.', '*.*.headers.'];
const REDACTED_PATHS = HEADER_PARENTS.flatMap((parent) =>
  SECRET_HEADERS.map((header) => `${parent}${header}`.replace('.[', '[')),
);

/** Makes the process's logger. Secret headers are censored in it and in all its children. */
export function createLogger(options: LoggerOptions): Logger {
  const stream = options.stream ?? destination({ fd: 1, sync: true });
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    },
    options.format === 'json' ? stream : pretty(stream),
  );
}

/** In this thread and at once: a worker would cost 30 MiB, and a stream could lose the last lines before an exit. */
function pretty(stream: DestinationStream): DestinationStream {
  const prettify = prettyFactory({ colorize: process.stdout.isTTY, translateTime: 'SYS:HH:MM:ss.l' });
  return { write: (line) => stream.write(prettify(line)) };
}

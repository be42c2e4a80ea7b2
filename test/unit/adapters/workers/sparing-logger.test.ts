import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sparingLogger } from '#adapters/workers/sparing-logger.ts';
import type { Logger } from '#core/ports/logger.ts';

let lines: object[];

beforeEach(() => {
  lines = [];
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => vi.useRealTimers());

function logger(bound: object = {}): Logger {
  const write =
    (level: string) =>
    (fields: object, msg: string): void =>
      void lines.push({ level, ...bound, ...fields, msg });
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => logger({ ...bound, ...fields }),
  };
}

test('a flood of one warning is a few lines, whichever child writes it, and the next one tells how many were left out', () => {
  const sparing = sparingLogger(logger());
  for (let request = 0; request < 1_000; request++) sparing.child({ request }).warn({}, 'away');
  expect(lines).toEqual([0, 1].map((request) => ({ level: 'warn', request, msg: 'away' })));
  vi.advanceTimersByTime(1_000);
  sparing.warn({}, 'away');
  expect(lines.at(-1)).toEqual({ level: 'warn', leftOut: 998, msg: 'away' });
  vi.advanceTimersByTime(1_000);
  sparing.warn({}, 'away');
  expect(lines.at(-1)).toEqual({ level: 'warn', msg: 'away' });
});

test('warnings of other words and faults are all written', () => {
  const sparing = sparingLogger(logger());
  for (let count = 0; count < 10; count++) sparing.warn({}, 'away');
  lines = [];
  sparing.warn({}, 'slow');
  for (let count = 0; count < 10; count++) sparing.error({}, 'away');
  expect(lines.map((line) => Object.values(line))).toEqual([
    ['warn', 'slow'],
    ...Array.from({ length: 10 }, () => ['error', 'away']),
  ]);
});

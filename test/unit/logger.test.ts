import { describe, expect, test } from 'vitest';
import { createLogger } from '#adapters/node/logger.ts';

function collect(format: 'json' | 'pretty', level = 'info') {
  const lines: string[] = [];
  const log = createLogger({ format, level, stream: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

describe('createLogger()', () => {
  test('writes one JSON object per line, with a time and a level that people read', () => {
    const { log, lines } = collect('json');
    log.child({ component: 'publish' }).warn({ stream: 7 }, 'slow');
    const { time, ...rest } = JSON.parse(lines[0] ?? '');
    expect(rest).toEqual({ level: 'warn', component: 'publish', stream: 7, msg: 'slow' });
    expect(new Date(time).toISOString()).toBe(time);
  });

  test.each(['json', 'pretty'] as const)(
    'keeps tokens and cookies out of %s logs, however deep a request lies',
    (format) => {
      const { log, lines } = collect(format);
      const headers = { authorization: 'Bearer s3cret', cookie: 's3cret', 'set-cookie': 's3cret', host: 'example.dev' };
      log.info({ headers }, 'one');
      log.info({ req: { headers } }, 'two');
      log.info({ context: { req: { headers } } }, 'three');
      log.info(headers, 'four');
      const text = lines.join('');
      expect(text).not.toContain('s3cret');
      expect(text.match(/example\.dev/g)).toHaveLength(4);
    },
  );

  test('says nothing below its level', () => {
    const { log, lines } = collect('json', 'warn');
    log.info('quiet');
    log.error('loud');
    expect(lines).toHaveLength(1);
  });

  test('writes before it returns, so that the last words before an exit are not lost', () => {
    const { log, lines } = collect('pretty');
    log.fatal('last words');
    expect(lines.join('')).toMatch(/FATAL.*last words/);
  });
});

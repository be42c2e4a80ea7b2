import { afterEach, expect, test, vi } from 'vitest';
import { consoleLogger } from '#adapters/workers/console-logger.ts';

afterEach(() => vi.restoreAllMocks());

function lines(method: 'info' | 'warn' | 'error'): unknown[] {
  const written: unknown[] = [];
  vi.spyOn(console, method).mockImplementation((text) => void written.push(JSON.parse(String(text))));
  return written;
}

test('one JSON object a line, with what is bound, and nothing below its level', () => {
  const written = lines('warn');
  const logger = consoleLogger('warn').child({ shard: 'watch-0' });
  logger.info({}, 'quiet');
  logger.warn({ stream: 7n }, 'slow');
  expect(written).toEqual([{ level: 'warn', shard: 'watch-0', stream: '7', msg: 'slow' }]);
});

test('an error is shown with its causes and its own fields, but for what may hold secrets', () => {
  const written = lines('error');
  const row = Object.assign(new Error('violates a constraint'), { code: '23502', detail: 'Failing row: s3cret' });
  const headers = { Authorization: 'Bearer s3cret', Cookie: 's3cret', 'Set-Cookie': 's3cret', Host: 'example.dev' };
  consoleLogger('info').error({ err: new Error('request failed', { cause: row }), headers }, 'failed');
  expect(written).toMatchObject([
    { err: { message: 'request failed', cause: { code: '23502', message: 'violates a constraint' } } },
  ]);
  expect(JSON.stringify(written)).toContain('example.dev');
  expect(JSON.stringify(written)).not.toContain('s3cret');
});

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { logWorkerLine } from '#infra/cloudflare/dev/worker-lines.ts';

const ERROR_MARK = '\u001B[31m✘ \u001B[41;31m[\u001B[41;97mERROR\u001B[41;31m]\u001B[0m \u001B[1m';

test.each([
  [
    '{"level":"info","shard":"watch-0","msg":"keys were read"}',
    { level: 30, component: 'worker', shard: 'watch-0', msg: 'keys were read' },
  ],
  [
    `${ERROR_MARK}{"level":"error","reason":{"message":"away"},"msg":"request failed"}\u001B[0m`,
    { level: 50, component: 'worker', reason: { message: 'away' }, msg: 'request failed' },
  ],
  [
    `${ERROR_MARK}Uncaught Error: gone\u001B[0m`,
    { level: 50, component: 'wrangler', msg: '✘ [ERROR] Uncaught Error: gone' },
  ],
  [
    '[wrangler:info] GET / 200 OK (3ms)',
    { level: 20, component: 'wrangler', msg: '[wrangler:info] GET / 200 OK (3ms)' },
  ],
  ['{"level":"loud","msg":"x"}', { level: 20, component: 'wrangler', msg: '{"level":"loud","msg":"x"}' }],
  ['{"level":"info","msg":', { level: 20, component: 'wrangler', msg: '{"level":"info","msg":' }],
])('%s is logged with its own level', (line, logged) => {
  const lines: string[] = [];
  logWorkerLine(
    line,
    pino({ level: 'debug', base: null, timestamp: false }, { write: (text) => void lines.push(text) }),
  );
  expect(lines.map((text) => JSON.parse(text))).toEqual([logged]);
});

import { describe, expect, test } from 'vitest';
import type { StreamEvent } from '#core/event.ts';
import { StatusError } from '#core/status-error.ts';
import { compileFilter, FilterFailed } from '#functions/watch/filter/compile.ts';
import { WORK_BUDGET } from '#functions/watch/filter/meter.ts';
import { eventOf } from '#test/unit/functions/watch/fakes.ts';

const WIDGET = {
  metadata: { name: 'blue', labels: { 'team/name': 'shop' } },
  spec: { size: 3, ratio: 0.5, big: 9007199254740991, tags: ['a', 'b'], timeout: '5m', nothing: null, on: true },
};

function eventWith(object: unknown, text: string = JSON.stringify(object)): StreamEvent {
  return { ...eventOf(1n, 5), object: text, size: text.length };
}

function matches(filter: string, object: unknown = WIDGET): boolean {
  return compileFilter(filter).matches(eventWith(object), 'ADDED');
}

function refusal(filter: string): StatusError {
  try {
    compileFilter(filter);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error(`not refused: ${filter}`);
}

function failure(filter: string, event: StreamEvent = eventWith(WIDGET)): FilterFailed {
  try {
    compileFilter(filter).matches(event, 'ADDED');
  } catch (error) {
    if (error instanceof FilterFailed) return error;
    throw error;
  }
  throw new Error(`did not fail: ${filter}`);
}

describe('an expression', () => {
  test.each([
    'event.data.spec.size > 2',
    'event.data.spec.size == 3',
    'event.data.spec.size == 3.0',
    'event.data.spec.size != 4',
    'event.data.spec.size + 1 == 4',
    '2 * event.data.spec.size - 1 == 5',
    'event.data.spec.size % 2 == 1',
    'event.data.spec.size / 2 == 1.5',
    'event.data.spec.size in [1, 2, 3]',
    '-event.data.spec.size < 0',
    'event.data.spec.ratio < 1',
    'event.data.spec.big == 9007199254740991',
    'event.data.spec.big < 9007199254740992',
    'event.data.spec.nothing == null',
    'event.data.spec.on == true',
    'event.data.spec.on && true',
    '"a" in event.data.spec.tags',
    'event.data.spec.tags == ["a", "b"]',
    'event.data.spec.tags.exists(t, t.startsWith("b"))',
    'event.data.spec.tags.filter(t, t == "a").size() == 1',
    'event.data.metadata.labels["team/name"] == "shop"',
    '"team/name" in event.data.metadata.labels',
    'has(event.data.spec.size) && !has(event.data.spec.nope)',
    'has(event.data.spec.nope) ? event.data.spec.nope > 1 : true',
    'event.data.metadata.name.matches("^bl.e$")',
    'duration(event.data.spec.timeout) < duration("6m")',
    'timestamp(event.time) < timestamp("2000-01-01T00:00:00Z")',
    'event.type == "dev.plumbline.added" && event.specversion == "1.0"',
    'event.source == "/plumbline/t1" && event.tenant == "t1" && event.datacontenttype == "application/json"',
    'event.subject == "example.dev/Widget/w5" && event.group + "/" + event.kind + "/" + event.name == event.subject',
    'event.id == "1-5" && event.uid == "uid-1-5" && event.txid == "1"',
    'int(event.resourceversion) == 5 && event.seq == "5" && !has(event.traceparent)',
    'type(event.data.spec.size) == double && type(event.data.spec.tags) == list',
  ])('holds: %s', (filter) => {
    expect(matches(filter)).toBe(true);
  });

  test('sees the type that the event has for its watcher', () => {
    const filter = compileFilter('event.type == "dev.plumbline.deleted"');
    const event = eventWith(WIDGET);
    expect([filter.matches(event, 'DELETED'), filter.matches(event, 'ADDED')]).toEqual([true, false]);
  });
});

describe('an expression is refused, with its text, the problem and the place', () => {
  test.each([
    ['1 ==', 'Unexpected token: EOF, at character 5 (the end)'],
    ['event.id === "x"', 'at character'],
    ['event.id + 1 == "x"', 'no such overload: string + int, at character 1 ("event.id + 1'],
    ['event.seq > 3', 'no such overload: string > int'],
    ['true && event.nope == 1', 'an event has no attribute "nope"; it has specversion, id,'],
    ['has(event.nope)', 'an event has no attribute "nope"'],
    ['nope == 1', 'Unknown variable: nope, at character 1'],
    ['event.id', 'it gives string; a filter gives bool'],
    ['event.data', 'compare what it gives, such as with "== true"'],
    ['true ? event.data.a : false', 'compare what it gives'],
    ['event == null ? true : 1', 'at character'],
    ['event.id.nope()', 'there is no function nope(); known are has, size,'],
    ['cel.bind(x, event.data, x == 1)', 'there is no function bind()'],
    ['event.id.split("") == ["a"]', 'there is no function split()'],
    ['bytes("a") == b"a"', 'there is no function bytes()'],
    ['timestamp(event.time).getHours("Europe/Berlin") == 1', 'getHours() takes no time zone'],
    ['event.id.matches("(")', 'not a regular expression of RE2'],
    ['event.id.matches("(?=a)")', 'not a regular expression of RE2'],
    ['event.id.matches("(a)\\\\1")', 'not a regular expression of RE2'],
    ['event.id.matches(event.id)', 'must be written as a text'],
    [`event.id.matches("${'a'.repeat(600)}")`, 'a pattern has at most 512 characters'],
    ['event.data.list.exists(event, true)', '"event" cannot name an element'],
    [`event.id == "${'x'.repeat(4096)}"`, 'it has 4110 characters; allowed are 4096'],
    ['!'.repeat(4000) + 'true', 'Exceeded maxAstNodes'],
    ['('.repeat(2000) + 'true' + ')'.repeat(2000), 'Exceeded maxDepth'],
    ['['.repeat(2000), 'Exceeded maxDepth'],
    [Array(600).fill('true').join('||'), 'Exceeded maxAstNodes'],
    ['\u0000', 'at character 1'],
    ['"\ud800" == 1', 'no such overload'],
    ['__proto__ == 1', 'Reserved identifier'],
    ['constructor == 1', 'Unknown variable: constructor'],
    ['event.constructor == 1', 'an event has no attribute "constructor"'],
    ['event["constructor"] == 1', 'No such key: constructor'],
    ['event.__proto__ == 1', 'an event has no attribute "__proto__"'],
    [' ', 'Unexpected token: EOF'],
  ])('%s', (filter, problem) => {
    const error = refusal(filter);
    expect([error.code, error.reason]).toEqual([400, 'BadRequest']);
    expect(error.message).toContain(problem);
    expect(error.message).toContain(`the filter ${JSON.stringify(filter.slice(0, 200)).slice(0, -1)}`);
    expect(error.details?.causes).toEqual([
      { reason: 'FieldValueInvalid', message: expect.stringContaining(problem), field: 'filter' },
    ]);
  });
});

describe('an expression that cannot be evaluated is an error, never false', () => {
  test.each([
    ['event.data.spec.nope == 1', 'No such key: nope; ask with has() before, at character 17 ("nope == 1")'],
    ['event.data.nope.more == 1', 'No such key: nope'],
    ['event.data.spec.size.more == 1', 'No such key: more'],
    ['has(event.data.nope.more)', 'No such key: nope'],
    ['event.data.spec.size > "3"', 'no such overload'],
    ['event.data.spec.size.contains("a")', 'no matching overload'],
    ['event.data.spec.tags[5] == "a"', 'index out of bounds'],
    ['event.data.spec.tags.matches("a")', 'matches() takes a string'],
    ['event.data.spec.size && true', 'bool'],
    ['event.data.spec.tags.exists(t, t > 1)', 'no such overload'],
    ['int(event.data.metadata.name) == 1', 'cannot convert to int'],
    ['timestamp(event.data.metadata.name) > timestamp(event.time)', 'ISO 8601'],
    ['1 / int(event.data.spec.size - 3) == 1', 'division by zero'],
    ['9223372036854775807 + int(event.data.spec.size) > 1', 'integer overflow'],
    ['event.traceparent == "x"', 'No such key: traceparent'],
    ['event[event.data.metadata.name] == 1', 'No such key: blue'],
    ['event.data.toString == 1', 'No such key: toString'],
    ['event.data.constructor == 1', 'No such key: constructor'],
    ['event.data.spec.__proto__ == 1', 'No such key: __proto__'],
    ['event.data["__proto__"]["polluted"] == 1', 'No such key: __proto__'],
    ['event.data.spec.tags.length == 2', 'No such key: length'],
  ])('%s', (filter, problem) => {
    const { message } = failure(filter);
    expect(message).toContain(`the filter ${JSON.stringify(filter)} failed on the event 1-5: `);
    expect(message).toContain(problem);
  });

  test('unless the other side of "and" or "or" decides, as CEL has it', () => {
    expect(matches('event.data.nope == 1 || true')).toBe(true);
    expect(matches('event.data.nope == 1 && false')).toBe(false);
    failure('event.data.nope == 1 || false');
  });

  test('it names what is wrong without repeating a large object', () => {
    const text = 'x'.repeat(100_000);
    expect(failure('bool(event.data.a) == true', eventWith({ a: text })).message.length).toBeLessThan(1000);
  });
});

describe('an object with keys of the host language', () => {
  const text = '{"__proto__":{"a":1},"constructor":"c","prototype":[],"toString":"t","hasOwnProperty":false,"then":{}}';

  test.each([
    'event.data.__proto__.a == 1',
    'event.data.constructor == "c"',
    'event.data.toString == "t" && event.data["hasOwnProperty"] == false',
    'has(event.data.then) && event.data.then == {}',
    'event.data.size() == 6 && event.data.all(key, key in event.data)',
    'event.data == event.data',
    '!has(event.data.valueOf)',
  ])('has them as any other: %s', (filter) => {
    expect(compileFilter(filter).matches(eventWith(undefined, text), 'ADDED')).toBe(true);
    expect(Object.hasOwn(Object.prototype, 'a')).toBe(false);
  });

  test.each(['1e400', '123456789012345678901234567890', '-0', '5e-324'])('has the number %s as a double', (number) => {
    const event = eventWith(undefined, `{"n":${number}}`);
    expect(compileFilter('event.data.n > -1 && type(event.data.n) == double').matches(event, 'ADDED')).toBe(true);
  });

  test('that is nested more deeply than the engine can go is an error like others', () => {
    const depth = 100_000;
    const event = eventWith(undefined, `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(failure('has(event.data.a)', event).message).toContain('cannot be evaluated');
  });
});

describe('the work for one event is bounded', () => {
  const list = Array.from({ length: 1000 }, (_, index) => index);
  const large = { list, text: 'ab'.repeat(400_000), many: Array.from({ length: 200_000 }, () => 1), list2: [list] };

  test.each([
    'event.data.many.all(x, x == 1)',
    'event.data.list.all(x, event.data.list.all(y, x + y >= 0))',
    'event.data.list.exists(x, event.data.list.exists(y, event.data.list.exists(z, event.data.nope == 1)))',
    'event.data.list.exists(x, event.data.nope == x) || true',
    'event.data.list.exists(x, int("z") == x)',
    'event.data.many == event.data.many',
    'event.data.list.exists(x, x == event.data.many)',
    'event.data.list in event.data.list2 && event.data.list.all(x, event.data.list2 == event.data.list2)',
    'event.data.list.map(x, event.data.text + event.data.text).size() == 1',
    '[event.data.list].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a)' +
      '.map(a, a + a).map(a, a + a).map(a, a + a).size() == 1',
    '[event.data.text].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() == 1',
    'event.data.text.matches("(a|b)*a(a|b){20}$")',
    'event.data.text.matches("(a?){100}b{1,100}c")',
    'event.data.list.exists(x, event.data.text.contains("c"))',
    'event.data.text.size() > 1 && event.data.list.all(x, event.data.text.lowerAscii() == "a")',
    'event.data.list.exists(x, duration("1h") == duration("2h"))',
  ])('%s', (filter) => {
    expect(failure(filter, eventWith(large)).message).toMatch(/takes more work than is allowed for one event/);
  });

  test.each([
    ['event.data.text.contains(event.data.text)', 'contains() takes a text of at most 1024 characters'],
    ['duration(event.data.text) == duration("1h")', 'duration() takes a text of at most 32 characters'],
    ['timestamp(event.data.text) == timestamp(event.time)', 'timestamp() takes a text of at most 32 characters'],
  ])('by the length of a text: %s', (filter, problem) => {
    expect(failure(filter, eventWith(large)).message).toContain(problem);
  });

  test.each([
    'event.data.list.all(x, x >= 0)',
    'event.data.list.exists(x, x == 999)',
    'event.data.text.contains("ba") && !event.data.text.contains("c")',
    'event.data.list.filter(x, x % 2 == 0).map(x, x * 2).exists(x, x == 1996)',
  ])('and what is reasonable is within: %s', (filter) => {
    expect(matches(filter, large)).toBe(true);
  });

  test('a budget used up by one event is whole again for the next', () => {
    failure('event.data.many.all(x, x == 1)', eventWith(large));
    expect(WORK_BUDGET).toBeGreaterThan(0);
    expect(matches('event.data.list.all(x, x >= 0)', large)).toBe(true);
  });
});

describe('filters of one text', () => {
  test('are compiled once, while they are among those used last', () => {
    const filter = compileFilter('event.kind == "Once"');
    expect(compileFilter('event.kind == "Once"')).toBe(filter);
    for (let count = 0; count < 300; count += 1) compileFilter(`event.kind == "Other${count}"`);
    expect(compileFilter('event.kind == "Once"')).not.toBe(filter);
  });

  test('are evaluated once for an event, and the object is parsed once for all', () => {
    const event = eventWith(WIDGET);
    let parsed = 0;
    const counting = {
      ...event,
      get object() {
        parsed += 1;
        return event.object;
      },
    };
    for (const size of [1, 2, 3]) {
      for (let watcher = 0; watcher < 3; watcher += 1) {
        expect(compileFilter(`event.data.spec.size > ${size}`).matches(counting, 'ADDED')).toBe(size < 3);
      }
    }
    expect(compileFilter('event.kind == "Widget"').matches(counting, 'ADDED')).toBe(true);
    expect(parsed).toBe(1);
  });

  test('an expression that asks for no data does not parse it', () => {
    const event = eventWith(undefined, 'this is not JSON');
    expect(compileFilter('event.kind == "Widget"').matches(event, 'ADDED')).toBe(true);
  });
});

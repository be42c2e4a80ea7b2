/** What nobody sane sends: pieces of JSON, bodies, names, queries and headers. */

import { gzipSync } from 'node:zlib';
import fc from 'fast-check';

const DEEP = 1_000_000;
const MIB = 1024 * 1024;

const many = (count: number, entry: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => entry(n)).join(',');

/** Texts that may stand where JSON has a value; some of them are none. */
export const hostileJson: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '9007199254740993',
    '-9007199254740993',
    '1e999',
    '1e-400',
    '1E+2',
    '-0',
    '0.1e1',
    '01',
    'NaN',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\uZZZZ"',
    '"\t"',
    '{"__proto__":{"a":1}}',
    '{"constructor":{"prototype":{"a":1}}}',
    '{"prototype":1}',
    '{"a":1,"a":2}',
    '{"":{"":null}}',
    '{"a/b~c%00":1}',
    'null',
    'true',
    '[]',
    '{}',
    '""',
    `${'['.repeat(70)}${']'.repeat(70)}`,
    `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`,
    `{${many(300, (n) => `"l${n}":"v"`)}}`,
    `["${'x'.repeat(64)}","${'x'.repeat(254)}/y"]`,
    `"${'x'.repeat(300_000)}"`,
    `"${'9'.repeat(5_000)}"`,
    '9'.repeat(5_000),
  ),
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => JSON.stringify(text)),
);

const doubling = JSON.stringify([
  { op: 'add', path: '/metadata/annotations', value: { a: 'x'.repeat(100) } },
  ...Array.from({ length: 40 }, (_, n) => ({ op: 'copy', from: '/metadata', path: `/spec/c${n}` })),
  ...Array.from({ length: 40 }, (_, n) => ({ op: 'copy', from: '/spec', path: `/spec/d${n}` })),
]);
const tests = `[${many(20_000, () => '{"op":"test","path":"/kind","value":1}')}]`;
const removals = `[${many(5_000, (n) => `{"op":"move","from":"/spec","path":"/spec/${'a/'.repeat(n % 50)}x"}`)}]`;

/** Whole bodies. */
export const hostileBody: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  fc.constantFrom<string | Uint8Array>(
    '',
    ' ',
    'null',
    '[]',
    '"x"',
    '{',
    '{"metadata":',
    '\uFEFF{}',
    '['.repeat(DEEP),
    '{"a":'.repeat(DEEP / 5),
    '{"metadata":{"name":"x","name":"y"}}',
    '{"metadata":{"__proto__":{"name":"x"}}}',
    `{"spec":{"a":"${'x'.repeat(MIB)}"}}`,
    doubling,
    tests,
    removals,
    new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]),
    new Uint8Array([0xc0, 0x80]),
    gzipSync(Buffer.alloc(64 * MIB)),
  ),
  fc.uint8Array({ maxLength: 64 }),
  hostileJson,
);

/** As they stand in a path: escaped, or not quite. */
export const hostileSegment: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '%00',
    '%2e%2e',
    '..',
    '.',
    '%2F',
    'a%2Fb',
    '%',
    '%zz',
    '%ff',
    '%ED%A0%80',
    'a.b.c',
    '__proto__',
    'constructor',
    'hasOwnProperty',
    'x'.repeat(64),
    'x'.repeat(254),
    '-a',
    'A',
    "a'--",
    '%F0%9F%92%A9',
    'system',
    'shared',
    'status',
    'namespaces',
    '*',
    '~',
    ':name',
    'a;b',
    'a,b',
  ),
  fc.string({ maxLength: 12 }).map((text) => encodeURIComponent(text.toWellFormed())),
);

/** Values of query parameters. */
export const hostileValue: fc.Arbitrary<string> = fc.oneof(
  fc
    .constantFrom(
      '',
      '%00',
      '%ED%A0%80',
      '%',
      '1e3',
      '-1',
      '0',
      '9007199254740993',
      '9'.repeat(400),
      'All',
      'true',
      'null',
      '!',
      'a=b,c!=d,!e,f in (a,b),g notin ()',
      'a in ('.repeat(200),
      `${'a=b,'.repeat(1_000)}c=d`,
      `metadata.name!=a,${'metadata.name=b,'.repeat(50)}`,
      'x'.repeat(6_000),
      '[]',
      '__proto__',
    )
    .map((text) => encodeURI(text)),
  fc.string({ unit: 'binary', maxLength: 12 }).map((text) => encodeURIComponent(text.toWellFormed())),
);

/** Header fields that mean something here, with values that do not. */
export const hostileHeaders: fc.Arbitrary<Record<string, string>> = fc.constantFrom<Record<string, string>>(
  { 'content-type': 'text/plain' },
  { 'content-type': '' },
  { 'content-type': 'application/json; charset=utf-16' },
  { 'content-type': 'application/strategic-merge-patch+json' },
  { 'content-type': 'application/apply-patch+yaml' },
  { 'content-type': 'application/vnd.kubernetes.protobuf' },
  { 'content-type': 'application/json;;;=,' },
  { 'content-encoding': 'gzip' },
  { 'content-encoding': 'gzip, gzip' },
  { 'content-encoding': 'x' },
  { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  { accept: 'text/html' },
  { accept: '*/*;q=0' },
  { 'accept-encoding': 'gzip;q=9, br, *' },
  { 'if-match': '*' },
  { 'if-match': '"1"' },
  { 'if-match': '"9'.repeat(100) },
  { 'if-none-match': '*' },
  { 'if-none-match': 'W/"1", "' },
  { range: 'bytes=0-1' },
  { origin: 'null' },
  { 'x-request-id': 'a'.repeat(4_000) },
  { 'x-http-method-override': 'DELETE' },
  { 'x-forwarded-for': '::1' },
  { cookie: 'a=b' },
  { expect: '100-continue' },
  { 'last-event-id': '\u00ff' },
);

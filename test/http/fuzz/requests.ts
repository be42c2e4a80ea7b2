/** Requests: mostly what the documents say, with a hostile part here and there. */

import fc from 'fast-check';

import type { Operation } from '#test/http/fuzz/documents.ts';
import { hostileBody, hostileHeaders, hostileSegment, hostileValue } from '#test/http/fuzz/hostile.ts';

export interface FuzzRequest {
  readonly method: string;
  /** Of the operation that it was made from; another path where hostile segments stand in it. */
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly suffix: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** Whether the metadata of a body are made such that they fit: the version that is known, or a name of the writer's own. */
  readonly isFitted: boolean;
  readonly newName: string;
  readonly fit: object;
  readonly caller: Caller;
}

const ALL = Array.from({ length: 12 }, (): Caller => 'all');
export type Caller = 'all' | 'editor' | 'controller' | 'viewer' | 'nobody';
const CALLERS: readonly Caller[] = [...ALL, 'editor', 'controller', 'viewer', 'nobody'];

export interface Places {
  readonly own: string;
  readonly foreign: string;
  readonly names: readonly string[];
}

export function requestOf(operations: readonly Operation[], places: Places): fc.Arbitrary<FuzzRequest> {
  // What the callers may write tells most; reads are many in the documents, and tell little.
  const weighted = operations.map((operation) => ({
    weight:
      !operation.path.includes('/example.dev/') || !operation.path.includes('{namespace}')
        ? 1
        : operation.method === 'GET'
          ? 2
          : 6,
    arbitrary: fc.constant(operation),
  }));
  return fc.oneof(...weighted).chain((operation) => fromOperation(operation, places));
}

function fromOperation(operation: Operation, { own, foreign, names }: Places): fc.Arbitrary<FuzzRequest> {
  const parts = fc.record({
    namespace: fc.oneof(
      { weight: 30, arbitrary: fc.constant(own) },
      { weight: 1, arbitrary: fc.constantFrom(foreign, 'none', 'shared', 'system') },
      { weight: 1, arbitrary: hostileSegment },
    ),
    name: fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: hostileSegment }),
    method: fc.oneof(
      { weight: 40, arbitrary: fc.constant(operation.method) },
      { weight: 1, arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'GET', 'PUT', 'TRACE', 'SEARCH') },
    ),
    query: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.oneof(known(operation), known(operation), unknown), { maxLength: 2 }) },
    ),
    type: fc.constantFrom(...(operation.body?.types ?? ['application/json'])),
    headers: fc.oneof({ weight: 24, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: hostileHeaders }),
    documented: operation.body?.json ?? fc.constant(undefined),
    operations: jsonPatch,
    hostile: fc.oneof({ weight: 24, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: hostileBody }),
    isFitted: fc.constantFrom(true, true, true, false),
    fit: fc.record(
      {
        labels: fc.constantFrom({}, { a: 'b' }, { a: 'c' }),
        annotations: fc.constantFrom({}, { a: 'b' }),
        finalizers: fc.constantFrom([], ['example.dev/x'], ['example.dev/x', 'example.dev/vault']),
      },
      { requiredKeys: [] },
    ),
    newName: fc.constantFrom(...names),
    caller: fc.constantFrom(...CALLERS),
  });
  return parts.map(({ namespace, name, query, type, headers, documented, operations, hostile, ...rest }) => {
    const hasName = operation.path.includes('{name}');
    const isNamespaced = operation.path.includes('{namespace}');
    const sent = hostile ?? (type === 'application/json-patch+json' ? operations : documented);
    return {
      ...rest,
      plural: operation.plural,
      namespace: isNamespaced ? namespace : undefined,
      name: hasName ? name : undefined,
      suffix: /\{name\}(.*)$/.exec(operation.path)?.[1] ?? '',
      path: operation.path.replace('{namespace}', namespace).replace('{name}', name),
      query: query.length === 0 ? '' : `?${query.join('&')}`,
      headers: { ...(sent !== undefined && { 'content-type': type }), ...headers },
      body: sent,
    };
  });
}

function known({ query }: Operation): fc.Arbitrary<string> {
  if (query.length === 0) return fc.constant('pretty=true');
  return fc.constantFrom(...query).chain(({ name, schema }) =>
    fc
      .oneof(
        {
          weight: 3,
          arbitrary: schema.enum ? fc.constantFrom(...schema.enum).map(String) : fc.constantFrom('1', '2', 'a'),
        },
        { weight: 1, arbitrary: hostileValue },
      )
      .map((value) => `${name}=${value}`),
  );
}

const unknown = fc
  .tuple(
    fc.constantFrom('pretty', 'watch', 'timeout', 'limit', 'continue', 'labelSelector', 'fieldSelector', '%00', 'a[b]'),
    hostileValue,
  )
  .map(([name, value]) => `${name}=${value}`);

const pointer = fc
  .array(
    fc.constantFrom(
      'metadata',
      'labels',
      'finalizers',
      'annotations',
      'spec',
      'size',
      'users',
      'status',
      '0',
      '-',
      '__proto__',
      'uid',
      '~1',
    ),
    {
      maxLength: 3,
    },
  )
  .map((steps) => steps.map((step) => `/${step}`).join(''));
const operation = fc.record(
  {
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
    path: fc.oneof(
      fc.constantFrom('/spec/size', '/metadata/labels', '/spec', '/status', '/metadata/finalizers/-'),
      pointer,
    ),
    from: pointer,
    value: fc.oneof(fc.constantFrom<unknown>(1, {}, 'a', 'example.dev/x', { a: 'b' }), fc.jsonValue({ maxDepth: 1 })),
  },
  { requiredKeys: ['op', 'path', 'value'] },
);
const jsonPatch = fc.array(operation, { maxLength: 4 }).map((list) => JSON.stringify(list));

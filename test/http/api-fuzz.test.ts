/**
 * Requests made from the OpenAPI documents, and hostile ones: every answer is a good one, and what the answers say of an
 * object keeps the rules, one after the other. `PLUMBLINE_TEST_FUZZ_REQUESTS` says how many.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { startApiServer, type ApiServer } from '#test/http/api-server.ts';
import { clientOf } from '#test/http/client.ts';
import { readOperations, type Operation } from '#test/http/fuzz/documents.ts';
import { requestOf, type Caller, type FuzzRequest } from '#test/http/fuzz/requests.ts';
import { CANARY, checkAnswer, checkList, checkStep, type Body, type Known } from '#test/http/fuzz/rules.ts';
import { createSender, type Sender } from '#test/http/fuzz/send.ts';
import { TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import { testSeed } from '#test/support/random.ts';

const REQUESTS = Number(process.env['PLUMBLINE_TEST_FUZZ_REQUESTS'] ?? 4_000);
const SEED = testSeed();
/** Each has objects of its own, and sends one request after the other. */
const WRITERS = 8;
const SECRET_KINDS = ['vaults', 'disks'];

let server: ApiServer;
let sender: Sender;
let operations: readonly Operation[];
const tenant = uniqueName('t');
const foreign = uniqueName('t');
const headersOf = {} as Record<Caller, Record<string, string>>;
const codes = new Map<number, number>();

beforeAll(async () => {
  server = await startApiServer();
  sender = createSender(server.baseUrl, WRITERS);
  const admin = await clientOf(server, { roles: ['admin'], tenants: '*' });
  operations = await readOperations(admin);
  for (const name of [tenant, foreign]) await admin.post(TENANTS, { metadata: { name } });
  for (let writer = 0; writer < WRITERS; writer++) {
    for (const name of namesOf(writer)) {
      const metadata = { name, labels: { canary: CANARY }, annotations: { canary: CANARY } };
      const path = `/apis/example.dev/v1/namespaces/${foreign}/widgets`;
      expect((await admin.post(path, { metadata, spec: { canary: CANARY } })).status).toBe(201);
    }
  }
  const token = async (roles: ('admin' | 'editor' | 'controller' | 'viewer')[]): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await server.token({ roles, tenants: [tenant] })}`,
  });
  Object.assign(headersOf, {
    all: await token(['admin']),
    editor: await token(['editor']),
    controller: await token(['controller']),
    viewer: await token(['viewer']),
    nobody: {},
  });
});

afterAll(async () => {
  sender?.close();
  await server?.stop();
});

test(
  `${REQUESTS} requests, as the documents have them and hostile ones, break no rule`,
  { timeout: 600_000 },
  async () => {
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => run(writer)));
    console.info(
      `PLUMBLINE_TEST_SEED=${SEED}: ${JSON.stringify(Object.fromEntries([...codes].toSorted(([a], [b]) => a - b)))}`,
    );
    // It tells nothing unless some of it was done, and some refused by each rule.
    const seen = [...codes.keys()];
    expect(seen).toEqual(expect.arrayContaining([200, 201, 202, 400, 401, 403, 404, 405, 409, 415, 422]));
  },
);

async function run(writer: number): Promise<void> {
  const known = new Map<string, Known>();
  const names = namesOf(writer);
  const requests = requestOf(operations, { own: tenant, foreign, names });
  await fc.assert(
    fc.asyncProperty(requests, (request) => tell(known, request, names)),
    { numRuns: Math.ceil(REQUESTS / WRITERS), seed: SEED + writer, endOnFailure: true },
  );
}

async function tell(known: Map<string, Known>, request: FuzzRequest, names: readonly string[]): Promise<void> {
  const { method, path, query, headers, caller, plural, name } = request;
  const key = `${plural}/${name}`;
  const before = known.get(key);
  const body = fitted(request, before);
  const answer = await sender.send(method, path + query, { ...headers, ...headersOf[caller] }, body);
  codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1);
  const found: Body = checkAnswer(request, answer);
  if (found === undefined || caller === 'nobody') return;
  if (answer.code === 200 && found.items) return checkList(request, found, tenant);
  if (request.namespace !== tenant || method === 'OPTIONS') return;
  if (method === 'POST' && answer.code === 201) {
    const created = `${plural}/${found.metadata.name}`;
    if (!isDry(request) && names.includes(found.metadata.name))
      known.set(created, stepped(request, known.get(created), found));
    return;
  }
  if (name === undefined || !names.includes(name)) return;
  if (answer.code === 404 && before) expect(before.mayBeGone, `${key} is not there any more`).toBe(true);
  if (answer.code === 404) known.delete(key);
  if (answer.code >= 300) return;
  // Its body may ask for a dry run in more ways than are told apart here.
  const isUnsure = method === 'DELETE' && typeof body === 'string' && body.includes('dryRun');
  if (isUnsure) known.delete(key);
  else if (isDry(request)) expect(found.metadata.resourceVersion).toBe(before?.object.metadata.resourceVersion);
  else known.set(key, stepped(request, before, found));
}

function stepped(request: FuzzRequest, before: Known | undefined, object: Body): Known {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  const isLast = deletionTimestamp !== undefined && finalizers.length === 0;
  const isGone = isLast || (request.method === 'DELETE' && deletionTimestamp === undefined);
  // Of what went at once, the answer shows what it was.
  if (request.method !== 'DELETE') checkStep(request, before, object, SECRET_KINDS.includes(request.plural));
  return { object, mayBeGone: isGone };
}

function isDry({ query }: FuzzRequest): boolean {
  return query.includes('dryRun=All');
}

function fitted(request: FuzzRequest, before: Known | undefined): string | Uint8Array | undefined {
  const { body, fit, isFitted, method, newName } = request;
  if (!isFitted || typeof body !== 'string' || !body.startsWith('{')) return body;
  const parsed: Body = parse(body);
  if (parsed === undefined) return body;
  if (method === 'DELETE') return JSON.stringify({ ...parsed, dryRun: undefined, kind: undefined });
  const resolved =
    method === 'POST' ? { name: newName } : { resourceVersion: before?.object.metadata.resourceVersion ?? '1' };
  return JSON.stringify({ ...parsed, metadata: { ...fit, ...resolved } });
}

function parse(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function namesOf(writer: number): string[] {
  return ['a', 'b', 'c'].map((name) => `w${writer}${name}`);
}

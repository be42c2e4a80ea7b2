/** What must hold of every answer, and of what the answers about one object say one after the other. */

import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

import { REASON_CODES } from '#core/status-error.ts';
import { SECRET } from '#test/http/fuzz/documents.ts';
import type { FuzzRequest } from '#test/http/fuzz/requests.ts';
import type { RawAnswer } from '#test/http/fuzz/send.ts';

/** Stands in objects of a tenant that no caller sees. */
export const CANARY = 'canary-of-a-stranger';

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
export type Body = any;

export interface Known {
  readonly object: Body;
  /** Something was asked of which it is not certain whether it was done. */
  readonly mayBeGone: boolean;
}

/** @throws an assertion: it is no answer of this API. */
export function checkAnswer({ method }: FuzzRequest, { code, headers, text }: RawAnswer): Body {
  // As Kubernetes answers a version that nothing has yet.
  const isOfFuture = code === 504 && text.includes('ResourceVersionTooLarge');
  if (!isOfFuture) expect(code, text.slice(0, 500)).toBeLessThan(500);
  expect(text).not.toContain(CANARY);
  expect(text).not.toContain(SECRET);
  expect(headers['x-request-id']).toMatch(/^[-\w.:]{1,128}$/);
  expect(headers['cache-control']).toMatch(/^no-(store|cache, private)$/);
  if (method === 'HEAD' || code === 204 || code === 304) {
    expect(text).toBe('');
    return undefined;
  }
  expect(headers['content-type']).toBe('application/json');
  const body: Body = JSON.parse(text);
  if (code < 400) return body;
  expect(body).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code });
  expect(REASON_CODES).toHaveProperty(body.reason, code);
  expect(body.message.length).toBeGreaterThan(10);
  expect(body.message.length).toBeLessThan(5_000);
  return body;
}

/** A list has objects of what the caller sees alone; a namespace that is none may be a step back in the path. */
export function checkList({ namespace }: FuzzRequest, { items, metadata }: Body, own: string): void {
  expect(Array.isArray(items)).toBe(true);
  expect(metadata).toBeTypeOf('object');
  for (const item of items) {
    expect(item).toMatchObject({ apiVersion: expect.any(String), kind: expect.any(String) });
    if (namespace === own) expect(item.metadata.namespace).toBe(own);
    else expect([own, 'shared', undefined]).toContain(item.metadata.namespace);
  }
}

/** What is known of an object after another answer about it. Kinds with secrets change without showing it. */
export function checkStep(request: FuzzRequest, before: Known | undefined, object: Body, hasSecrets: boolean): void {
  const { metadata, spec, status } = object;
  expect(metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(metadata.generation).toBeGreaterThanOrEqual(1);
  const observed = status?.observedGeneration;
  if (typeof observed === 'number') expect(observed).toBeLessThanOrEqual(metadata.generation);
  const old = before?.object;
  if (old === undefined || old.metadata.uid !== metadata.uid) {
    if (before) expect(before.mayBeGone, 'another uid, and the object before was not seen to go').toBe(true);
    return;
  }
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp'])
    expect(metadata[field]).toBe(old.metadata[field]);
  if (old.metadata.deletionTimestamp) expect(metadata.deletionTimestamp).toBe(old.metadata.deletionTimestamp);
  const [from, to] = [BigInt(old.metadata.resourceVersion), BigInt(metadata.resourceVersion)];
  expect(to).toBeGreaterThanOrEqual(from);
  if (to === from) expect(object).toEqual(old);
  else if (!hasSecrets) {
    const asBefore = { ...object, metadata: { ...metadata, resourceVersion: old.metadata.resourceVersion } };
    expect(isDeepStrictEqual(asBefore, old), 'a new version of the same object').toBe(false);
  }
  const isDeleted = !old.metadata.deletionTimestamp && metadata.deletionTimestamp !== undefined;
  const isChanged = !isDeepStrictEqual(spec, old.spec);
  const step = metadata.generation - old.metadata.generation;
  if (hasSecrets) expect([0, 1]).toContain(step);
  else expect(step).toBe(Number(isDeleted || isChanged));
  const isWrite = request.method === 'PUT' || request.method === 'PATCH';
  if (isWrite && request.suffix === '/status') {
    const { resourceVersion: _, ...rest } = metadata;
    const { resourceVersion: __, ...oldRest } = old.metadata;
    expect({ spec, rest }).toEqual({ spec: old.spec, rest: oldRest });
    expect(observed ?? 0).toBeGreaterThanOrEqual(old.status?.observedGeneration ?? 0);
  } else if (isWrite) expect(status).toEqual(old.status);
}

import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';

import type { JsonObject, JsonValue } from '#core/json.ts';
import { defineKind } from '#core/kind.ts';
import { readObject } from '#core/object-validation.ts';
import { StatusError } from '#core/status-error.ts';

const kind = defineKind({
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: v.object({}),
});
const ADDRESS = { kind, namespace: 'acme', name: 'blue' };

function refusal(body: JsonObject): StatusError {
  try {
    readObject(body, ADDRESS);
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('accepted');
}

function metadataCauses(metadata: JsonObject): (string | undefined)[][] {
  const error = refusal({ metadata });
  expect(error.code).toBe(422);
  return (error.details?.causes ?? []).map((cause) => [cause.field, cause.reason]);
}

describe('the body of a write', () => {
  test('is read, with null and absent parts empty', () => {
    const metadata = {
      name: 'blue',
      namespace: 'acme',
      labels: null,
      creationTimestamp: null,
      finalizers: ['a/b', 'a/b', 'c'],
    };
    expect(readObject({ apiVersion: 'example.dev/v1', kind: 'Widget', metadata, status: {} }, ADDRESS)).toEqual({
      name: 'blue',
      generateName: undefined,
      preconditions: {},
      hasDeletionTimestamp: false,
      chosen: { labels: {}, annotations: {}, finalizers: ['a/b', 'c'], ownerReferences: [] },
      spec: undefined,
      unknownFields: [],
    });
  });

  test.for<[JsonObject, string]>([
    [{ apiVersion: 'example.dev/v2' }, 'apiVersion in the body is "example.dev/v2", but the URL says "example.dev/v1"'],
    [{ kind: 'Gadget' }, 'kind in the body is "Gadget"'],
    [{ metadata: { name: 'red' } }, 'metadata.name in the body is "red"'],
    [{ metadata: { namespace: 'globex' } }, 'metadata.namespace in the body is "globex"'],
    [{ metadata: { name: 7 } }, 'metadata.name in the body is 7'],
  ])('must name what the URL names: %j', ([body, words]) => {
    const error = refusal(body);
    expect(error.code).toBe(400);
    expect(error.message).toContain(words);
  });

  test.for<[JsonObject, string, string]>([
    [{ labels: { 'bad key': 'x' } }, 'metadata.labels["bad key"]', 'FieldValueInvalid'],
    [{ labels: { a: 'x'.repeat(64) } }, 'metadata.labels.a', 'FieldValueInvalid'],
    [{ labels: { a: 1 } }, 'metadata.labels.a', 'FieldValueTypeInvalid'],
    [{ labels: [] }, 'metadata.labels', 'FieldValueTypeInvalid'],
    [{ annotations: { ['x'.repeat(64)]: '' } }, `metadata.annotations.${'x'.repeat(64)}`, 'FieldValueInvalid'],
    [{ annotations: { a: 'ü'.repeat(131_072) } }, 'metadata.annotations', 'FieldValueTooLong'],
    [{ finalizers: ['no spaces'] }, 'metadata.finalizers[0]', 'FieldValueInvalid'],
    [{ finalizers: [null] }, 'metadata.finalizers[0]', 'FieldValueTypeInvalid'],
    [{ finalizers: 'a' }, 'metadata.finalizers', 'FieldValueTypeInvalid'],
    [
      { ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a' }] },
      'metadata.ownerReferences[0].uid',
      'FieldValueRequired',
    ],
    [{ resourceVersion: '007' }, 'metadata.resourceVersion', 'FieldValueInvalid'],
    [{ resourceVersion: 7 }, 'metadata.resourceVersion', 'FieldValueInvalid'],
    [{ resourceVersion: '9223372036854775808' }, 'metadata.resourceVersion', 'FieldValueInvalid'],
  ])('is refused by field: %j', ([metadata, field, reason]) => {
    expect(metadataCauses(metadata)).toEqual([[field, reason]]);
  });

  test('may have one controlling owner, and annotations of 256 KiB', () => {
    const owner = { apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u', controller: true };
    expect(metadataCauses({ ownerReferences: [owner, owner] })).toEqual([
      ['metadata.ownerReferences', 'FieldValueInvalid'],
    ]);
    expect(
      readObject({ metadata: { ownerReferences: [owner, { ...owner, controller: false }] } }, ADDRESS).chosen
        .ownerReferences,
    ).toHaveLength(2);
    expect(() => readObject({ metadata: { annotations: { a: 'x'.repeat(262_143) } } }, ADDRESS)).not.toThrow();
  });

  test('names the fields that do not exist, and leaves them out', () => {
    const owner = { apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u' };
    const metadata = { color: 'blue', ownerReferences: [{ ...owner, x: 1 }] };
    const { unknownFields, chosen } = readObject({ metadata, 'a b': 1, data: {} }, ADDRESS);
    expect(unknownFields).toEqual(['["a b"]', 'data', 'metadata.color', 'metadata.ownerReferences[0].x']);
    expect(chosen.ownerReferences).toEqual([owner]);
  });

  test('names every field that is wrong, wherever it lies', () => {
    const error = refusal({
      metadata: { labels: { a: 1, b: 'ok', 'c d': 'x' }, finalizers: [1] },
      spec: [],
    });
    expect(error.details?.causes?.map((cause) => cause.field)).toEqual([
      'metadata.labels.a',
      'metadata.labels["c d"]',
      'metadata.finalizers[0]',
      'spec',
    ]);
  });

  test('never makes anything but a Status of what strangers send', () => {
    const anything = fc.jsonValue() as fc.Arbitrary<JsonValue>;
    const metadata = fc.dictionary(
      fc.constantFrom(
        'name',
        'labels',
        'annotations',
        'finalizers',
        'ownerReferences',
        'uid',
        'resourceVersion',
        'deletionTimestamp',
      ),
      fc.oneof(anything, fc.array(anything), fc.dictionary(fc.string(), anything)),
    );
    fc.assert(
      fc.property(fc.record({ metadata: fc.oneof(metadata, anything), spec: anything, kind: anything }), (body) => {
        try {
          readObject(body, ADDRESS);
        } catch (error) {
          expect(error).toBeInstanceOf(StatusError);
          expect([400, 422]).toContain((error as StatusError).code);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

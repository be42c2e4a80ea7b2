import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { resourceJson } from '#core/resource-json.ts';
import type { ResourceRow } from '#core/resource.ts';

const row: ResourceRow = {
  uid: '0199c5a0-0000-7000-8000-000000000001',
  tenant: 'acme',
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  name: 'blue',
  resourceVersion: '9223372036854775807',
  generation: 3,
  creationTimestamp: new Date('2026-11-29T10:00:00.999Z'),
  deletionTimestamp: null,
  finalizers: [],
  labels: '{}',
  annotations: '{}',
  ownerReferences: '[]',
  spec: '{}',
  status: '{}',
};

describe('resourceJson', () => {
  it('leaves out what is empty, except the spec', () => {
    expect(resourceJson(row)).toBe(
      '{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"blue","namespace":"acme",' +
        '"uid":"0199c5a0-0000-7000-8000-000000000001","resourceVersion":"9223372036854775807","generation":3,' +
        '"creationTimestamp":"2026-11-29T10:00:00Z"},"spec":{}}',
    );
  });

  it('shows all that an object can have', () => {
    const full: ResourceRow = {
      ...row,
      deletionTimestamp: new Date('2026-11-29T11:00:00.000Z'),
      finalizers: ['example.dev/a', 'example.dev/b'],
      labels: '{"app": "x"}',
      annotations: '{"note": "line\\nbreak"}',
      ownerReferences: '[{"uid": "u"}]',
      spec: '{"size": 1}',
      status: '{"phase": "Ready"}',
    };
    expect(JSON.parse(resourceJson(full))).toEqual({
      apiVersion: 'example.dev/v1',
      kind: 'Widget',
      metadata: {
        name: 'blue',
        namespace: 'acme',
        uid: row.uid,
        resourceVersion: row.resourceVersion,
        generation: 3,
        creationTimestamp: '2026-11-29T10:00:00Z',
        deletionTimestamp: '2026-11-29T11:00:00Z',
        deletionGracePeriodSeconds: 0,
        labels: { app: 'x' },
        annotations: { note: 'line\nbreak' },
        finalizers: ['example.dev/a', 'example.dev/b'],
        ownerReferences: [{ uid: 'u' }],
      },
      spec: { size: 1 },
      status: { phase: 'Ready' },
    });
  });

  it('gives cluster-scoped objects no namespace', () => {
    expect(JSON.parse(resourceJson({ ...row, tenant: 'system' })).metadata).not.toHaveProperty('namespace');
  });

  it('carries documents to the byte, also numbers that JavaScript cannot hold', () => {
    const spec = '{"large": 12345678901234567890.123456789, "huge": 1e400}';
    expect(resourceJson({ ...row, spec })).toContain(`"spec":${spec}`);
  });

  it('is JSON of the row whatever its documents and finalizers are', () => {
    fc.assert(
      fc.property(
        fc.object(),
        fc.array(fc.string()),
        fc.dictionary(fc.string(), fc.string()),
        (spec, finalizers, labels) => {
          const texts = { spec: JSON.stringify(spec), finalizers, labels: JSON.stringify(labels) };
          const shown = JSON.parse(resourceJson({ ...row, ...texts }));
          expect(shown.spec).toEqual(JSON.parse(texts.spec));
          expect(shown.metadata.finalizers ?? []).toEqual(finalizers);
          expect(shown.metadata.labels ?? {}).toEqual(JSON.parse(texts.labels));
        },
      ),
    );
  });

  it('writes whole seconds, cut and not rounded, for any year', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true }), (creationTimestamp) => {
        const shown = JSON.parse(resourceJson({ ...row, creationTimestamp })).metadata.creationTimestamp;
        expect(shown).not.toContain('.');
        expect(Date.parse(shown)).toBe(Math.floor(creationTimestamp.getTime() / 1000) * 1000);
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';

import { eventJson } from '#core/event-json.ts';
import { EVENT_TYPES, type StreamEvent } from '#core/event.ts';

const event: StreamEvent = {
  stream: 7n,
  seq: 9007199254740993n,
  position: 42n,
  id: '0199c5a0-0000-7000-8000-00000000000e',
  type: 'MODIFIED',
  time: new Date('2026-11-29T10:00:00.120Z'),
  txid: '777',
  traceparent: null,
  subject: {
    tenant: 'acme',
    group: 'example.dev',
    kind: 'Widget',
    name: 'blue',
    uid: '0199c5a0-0000-7000-8000-000000000001',
    resourceVersion: '4711',
  },
  object: '{"kind":"Widget"}',
  size: 17,
  labels: '{}',
  oldLabels: null,
};

describe('eventJson', () => {
  it('is the CloudEvent of the design, to the byte', () => {
    expect(eventJson(event, 'MODIFIED')).toBe(
      '{"specversion":"1.0","id":"0199c5a0-0000-7000-8000-00000000000e","source":"/plumbline/acme",' +
        '"type":"dev.plumbline.modified","subject":"example.dev/Widget/blue","time":"2026-11-29T10:00:00.120Z",' +
        '"datacontenttype":"application/json","tenant":"acme","uid":"0199c5a0-0000-7000-8000-000000000001",' +
        '"resourceversion":"4711","seq":"9007199254740993","txid":"777","data":{"kind":"Widget"}}',
    );
  });

  it('takes its type from what the change means to the watcher, not from the event', () => {
    const types = EVENT_TYPES.map((type) => JSON.parse(eventJson(event, type)).type);
    expect(types).toEqual(['dev.plumbline.added', 'dev.plumbline.modified', 'dev.plumbline.deleted']);
  });

  it('carries the traceparent that the writer set, whatever text that is', () => {
    const traceparent = '00-"\n-01';
    expect(JSON.parse(eventJson({ ...event, traceparent }, 'ADDED')).traceparent).toBe(traceparent);
    expect(eventJson({ ...event, traceparent }, 'ADDED')).not.toContain('\n');
    expect(JSON.parse(eventJson(event, 'ADDED'))).not.toHaveProperty('traceparent');
  });

  it('has only attribute names that CloudEvents allows, and only strings in them', () => {
    const attributes = Object.entries(JSON.parse(eventJson({ ...event, traceparent: '00-1' }, 'ADDED')));
    for (const [name, value] of attributes.filter(([name]) => name !== 'data')) {
      expect(name).toMatch(/^[a-z0-9]{1,20}$/);
      expect(value).toEqual(expect.stringMatching(/./));
    }
  });
});

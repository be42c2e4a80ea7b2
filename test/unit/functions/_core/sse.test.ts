import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { SSE_OPENING, sseFrame, sseRetry } from '#core/sse.ts';

it('sseRetry spreads clients over 3 s, and lets none come at once', () => {
  expect([0, 0.5, 1].map(sseRetry)).toEqual(['retry: 500\n\n', 'retry: 2000\n\n', 'retry: 3500\n\n']);
});

describe('sseFrame', () => {
  it('is one event of a stream', () => {
    expect(sseFrame({ event: 'ADDED', id: 'Ag', data: '{}' })).toBe('event: ADDED\nid: Ag\ndata: {}\n\n');
  });

  it('leaves the last event id alone without an id, and empties it with an empty one', () => {
    expect(sseFrame({ event: 'ADDED', data: '{}' })).not.toMatch(/^id/m);
    expect(sseFrame({ event: 'ERROR', id: '', data: '{}' })).toMatch(/^id: $/m);
  });

  it.each(['\n', '\r', '\r\n'])('refuses data, names and ids with the line break %j', (lineBreak) => {
    const broken = `a${lineBreak}data: forged`;
    expect(() => sseFrame({ event: 'ADDED', data: broken })).toThrow(TypeError);
    expect(() => sseFrame({ event: broken, data: '{}' })).toThrow(TypeError);
    expect(() => sseFrame({ event: 'ADDED', id: broken, data: '{}' })).toThrow(TypeError);
  });

  it('refuses an id with NUL, which a client would ignore', () => {
    expect(() => sseFrame({ event: 'ADDED', id: 'a\0', data: '{}' })).toThrow(TypeError);
  });

  it('reaches a parser as it was, whatever the JSON and however the bytes are cut', () => {
    const events = fc.array(
      fc.record({
        event: fc.constantFrom('ADDED', 'BOOKMARK'),
        id: fc.stringMatching(/^[\w-]{1,40}$/),
        data: fc.json(),
      }),
      { minLength: 1 },
    );
    fc.assert(
      fc.property(events, fc.integer({ min: 1, max: 50 }), (sent, size) => {
        const received: EventSourceMessage[] = [];
        const comments: string[] = [];
        const parser = createParser({
          onEvent: (event) => received.push(event),
          onComment: (comment) => comments.push(comment),
          onError: (error) => expect.unreachable(error.message),
        });
        const text = SSE_OPENING + sent.map(sseFrame).join('');
        for (let start = 0; start < text.length; start += size) parser.feed(text.slice(start, start + size));
        expect(received).toEqual(sent);
        expect(comments).toEqual(['ok']);
      }),
    );
  });
});

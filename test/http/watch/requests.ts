import { describe, expect, test } from 'vitest';

import { expectStatus, useWorld } from '#test/http/resource-api/world.ts';
import { EVENTS, expectFailure, readyOf, useWatches } from '#test/http/watch/world.ts';
import type { OpenTarget } from '#test/http/target.ts';

export function requests(open: OpenTarget): void {
  const world = useWorld(open);
  const watches = useWatches(world);

  describe('parameters', () => {
    test.each([
      { tenant: 'x' },
      { Tenants: 'x' },
      { kind: 'Widget' },
      { resourceVersion: '0' },
      { watch: 'true' },
      { Filter: 'true' },
      { 'a"b\u0000': '1' },
    ])('an unknown one is refused, so that a misspelt one does not become a watch of everything: %j', async (query) => {
      const { status, body } = await watches.refused(query);
      expect(status).toBe(400);
      expectFailure(
        body,
        400,
        'BadRequest',
        /is not known; known are tenants, kinds, labelSelector, types, filter, from, /,
      );
    });

    test.each(['tenants', 'kinds', 'labelSelector', 'types', 'filter', 'from', 'initial'])(
      '%s without a value is refused: a cursor that was forgotten is no watch from now on',
      async (name) => {
        const answer = await world.viewer.get(`${EVENTS}?${name}=`);
        expectStatus(answer, 400, 'BadRequest', `"${name}" is empty`);
      },
    );

    test.each(['tenants', 'kinds', 'labelSelector', 'types', 'filter', 'from', 'initial'])(
      '%s given twice is refused',
      async (name) => {
        const answer = await world.viewer.get(`${EVENTS}?${name}=a&${name}=a`);
        expectStatus(answer, 400, 'BadRequest', `"${name}" is given 2 times`);
      },
    );

    test.each(['yes', '1', 'TRUE', 'true '])('initial=%s is refused', async (value) => {
      expectFailure((await watches.refused({ initial: value })).body, 400, 'BadRequest', '"true" or "false"');
    });
  });

  describe('methods', () => {
    test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is 405, and says what there is', async (method) => {
      const answer = await world.viewer.send(method, EVENTS);
      expectStatus(answer, 405, 'MethodNotAllowed');
      expect(answer.headers.get('Allow')).toBe('GET');
    });

    test('HEAD is 405: there is no such thing as the headers of a stream that is not opened', async () => {
      const answer = await world.viewer.send('HEAD', EVENTS);
      expect([answer.status, answer.text, answer.headers.get('Allow')]).toEqual([405, '', 'GET']);
    });

    test.each(['/watch', '/watch/v1', '/watch/v1/events/', '/watch/v1/event', '/watch/v2/events', '/watch/v1/acks/'])(
      'there is nothing at %s',
      async (path) => {
        expectStatus(await world.viewer.get(path), 404, 'NotFound', 'there is nothing at');
      },
    );
  });

  describe('Accept', () => {
    test.each(['application/json', 'text/plain', 'image/*', 'text/event-streams', 'text/event-stream;q=0'])(
      '%s is 406: a watch is an event stream',
      async (accept) => {
        const { status, body } = await watches.refused({}, { headers: { Accept: accept } });
        expect(status).toBe(406);
        expectFailure(body, 406, 'NotAcceptable', 'text/event-stream');
      },
    );

    test.each(['text/event-stream', '*/*', 'text/*', 'text/html, text/event-stream;q=0.5', 'TEXT/EVENT-STREAM', ''])(
      '%j is served',
      async (accept) => {
        expect(readyOf(await watches.open({}, { headers: { Accept: accept } }))).toBeDefined();
      },
    );
  });
}

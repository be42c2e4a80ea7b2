import { expect, test } from 'vitest';

import { StatusError } from '#core/status-error.ts';
import { GoneTenants } from '#functions/watch/groups/gone-tenants.ts';
import { fakeDirectory } from '#test/unit/functions/watch/fakes.ts';
import { testMember } from '#test/unit/functions/watch/groups/member.ts';

const GROUP = 1n;
const TOLD = ['BOOKMARK TenantGone'];

test('a member is told that a tenant is gone, also when the directory is away at first', async () => {
  const directory = fakeDirectory(1);
  const { session, sent } = testMember();
  const gone = new GoneTenants({ streams: directory, groups: { withLanes: async () => new Set([GROUP]) } });
  directory.close(1);
  gone.add([{ session, stream: 1n, tenant: 't1' }]);
  directory.beforeList = () => {
    throw new StatusError('ServiceUnavailable', 'away');
  };
  await expect(gone.tell([])).rejects.toThrow('away');
  expect(sent).toEqual([]);
  directory.beforeList = () => undefined;
  for (let call = 0; call < 2; call += 1) {
    await gone.tell([]);
    expect(sent).toEqual(TOLD);
  }
  expect(session.isClosed).toBe(false);
});

test('a member whose lanes went to others is told nothing', async () => {
  const { session, sent } = testMember();
  const gone = new GoneTenants({ streams: fakeDirectory(1), groups: { withLanes: async () => new Set([GROUP]) } });
  gone.add([{ session, stream: 1n, tenant: 't1' }]);
  await gone.tell([session]);
  expect([sent, session.isClosed]).toEqual([[], false]);
});

test('a member ends with the last tenant that it named, once none of its group has anything left to do', async () => {
  const directory = fakeDirectory(1);
  const { session, sent } = testMember();
  let withLanes = new Set<bigint>();
  const gone = new GoneTenants({ streams: directory, groups: { withLanes: async () => withLanes } });
  await gone.tell([session]);
  directory.close(1);
  withLanes = new Set([GROUP]);
  await gone.tell([session]);
  expect([sent, session.isClosed]).toEqual([[], false]);
  withLanes = new Set();
  await gone.tell([session]);
  expect([sent, session.isClosed, session.endedBy]).toEqual([TOLD, true, 'tenant']);
});

test('a member that was told before is not told again when it ends', async () => {
  const directory = fakeDirectory();
  const { session, sent } = testMember();
  const gone = new GoneTenants({ streams: directory, groups: { withLanes: async () => new Set() } });
  gone.add([{ session, stream: 1n, tenant: 't1' }]);
  await gone.tell([session]);
  expect([sent, session.endedBy]).toEqual([TOLD, 'tenant']);
});

test('a member that named no tenants stays for those that come', async () => {
  const { session, sent } = testMember({ tenantsAreNamed: false });
  const gone = new GoneTenants({ streams: fakeDirectory(), groups: { withLanes: async () => new Set() } });
  await gone.tell([session]);
  expect([sent, session.isClosed]).toEqual([[], false]);
});

/**
 * Watch as its clients see it, black box: the addresses and tokens of a deployment are all it needs. The deployment
 * serves the kinds of `test/http/kinds.ts`, and lets deleted tenants go within a second (`TENANT_GRACE_SECONDS=1`). It
 * leaves its tenants behind; their names are never used twice.
 */

import { describe } from 'vitest';

import { audiences } from '#test/http/watch/audiences.ts';
import { bookmarks } from '#test/http/watch/bookmarks.ts';
import { connections } from '#test/http/watch/connections.ts';
import { cursors } from '#test/http/watch/cursors.ts';
import { events } from '#test/http/watch/events.ts';
import { filters } from '#test/http/watch/filters.ts';
import { handshake } from '#test/http/watch/handshake.ts';
import { identity } from '#test/http/watch/identity.ts';
import { initial } from '#test/http/watch/initial.ts';
import { isolation } from '#test/http/watch/isolation.ts';
import { live } from '#test/http/watch/live.ts';
import { metrics } from '#test/http/watch/metrics.ts';
import { requests } from '#test/http/watch/requests.ts';
import { resume } from '#test/http/watch/resume.ts';
import { selection } from '#test/http/watch/selection.ts';
import { sharedTenant } from '#test/http/watch/shared-tenant.ts';
import { tenantLife } from '#test/http/watch/tenant-life.ts';
import type { OpenDeployment, OpenTarget } from '#test/http/target.ts';

export function watchSuite(open: OpenDeployment): void {
  const users: OpenTarget = async () => (await open()).targets.public;

  describe('handshake', () => handshake(users));
  describe('live', () => live(users));
  describe('events', () => events(users));
  describe('resume', () => resume(users));
  describe('initial state', () => initial(users));
  describe('selection', () => selection(users));
  describe('filters', () => filters(open));
  describe('bookmarks', () => bookmarks(users));
  describe('cursors', () => cursors(users));
  describe('requests', () => requests(users));
  describe('identity', () => identity(users));
  describe('the shared tenant', () => sharedTenant(users));
  describe('life of tenants', () => tenantLife(users));
  describe('isolation', () => isolation(users));
  describe('connections', () => connections(users));
  describe('audiences', () => audiences(open));
  describe('metrics', () => metrics(open));
}

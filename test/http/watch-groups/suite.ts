/** Watch groups as their members see them, black box; see the suite of watch. */

import { describe } from 'vitest';

import type { OpenDeployment, OpenTarget } from '#test/http/target.ts';
import { acks } from '#test/http/watch-groups/acks.ts';
import { delivery } from '#test/http/watch-groups/delivery.ts';
import { members } from '#test/http/watch-groups/members.ts';
import { parameters } from '#test/http/watch-groups/parameters.ts';
import { parking } from '#test/http/watch-groups/parking.ts';

export function watchGroupsSuite(open: OpenDeployment): void {
  const users: OpenTarget = async () => (await open()).targets.public;

  describe('parameters', () => parameters(users));
  describe('delivery', () => delivery(users));
  describe('parking', () => parking(users));
  describe('members', () => members(users));
  describe('acks', () => acks(open));
}

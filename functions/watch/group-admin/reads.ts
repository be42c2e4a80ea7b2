/** `GET /watch/v1/groups` and `GET /watch/v1/groups/{name}`. */

import type { LanePlace } from '#core/ports/watch-group-admin.ts';
import { groupAnswer, laneAnswer, laneText, membersAnswer } from '#functions/watch/group-admin/answers.ts';
import type { GroupAdminDeps } from '#functions/watch/group-admin/deps.ts';
import { findGroup } from '#functions/watch/group-admin/find-group.ts';
import {
  idAfter,
  notAPlace,
  ownerParameter,
  pageRequest,
  tenantsParameter,
} from '#functions/watch/group-admin/requests.ts';
import { seesGroup } from '#functions/watch/group-admin/rights.ts';
import type { MethodHandler } from '#http/methods.ts';
import { assertParameters } from '#http/query.ts';

const GROUPS_PAGE = { max: 100, usual: 50 };
const LANES_PAGE = { max: 1_600, usual: 256 };
const ALL_OWNERS = '*';
const LANE = /^([1-9][0-9]{0,17})\.([0-9]|1[0-5])$/;
const BEFORE_ALL: LanePlace = { stream: 0n, lane: 0 };

/** The caller's own; an admin's also of another owner, or of all: `owner=*`. */
export function listGroups({ groups }: GroupAdminDeps): MethodHandler {
  return async (c) => {
    assertParameters(c, ['tenants', 'owner', 'limit', 'after']);
    const caller = c.get('caller');
    const owner = ownerParameter(c) ?? caller.subject;
    const query = {
      audience: caller.audience,
      tenants: tenantsParameter(c),
      owner: owner === ALL_OWNERS ? undefined : owner,
    };
    const { limit, after } = pageRequest(c, GROUPS_PAGE);
    const found = await groups.list(query, idAfter(after), limit + 1);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return c.json({
      items: page.filter((group) => seesGroup(caller, group)).map(groupAnswer),
      ...(found.length > limit && last && { next: String(last.group) }),
    });
  };
}

/** With its members, and a page of its lanes. */
export function readGroup(deps: GroupAdminDeps): MethodHandler {
  return async (c) => {
    const { limit, after } = pageRequest(c, LANES_PAGE);
    const place = placeAfter(after);
    const group = await findGroup(deps, c, ['limit', 'after']);
    const found = await deps.groups.laneStates(group.group, place, limit + 1);
    const lanes = found.slice(0, limit);
    const last = lanes.at(-1);
    return c.json({
      ...groupAnswer(group),
      members: membersAnswer(group),
      lanes: lanes.map(laneAnswer),
      ...(found.length > limit && last && { next: laneText(last) }),
    });
  };
}

function placeAfter(after: string | undefined): LanePlace {
  if (after === undefined) return BEFORE_ALL;
  const [, stream, lane] = LANE.exec(after) ?? [];
  if (stream === undefined) throw notAPlace(after, 'next');
  return { stream: BigInt(stream), lane: Number(lane) };
}

/**
 * Discovery: which groups, versions and kinds there are, so that clients find them by the names that people use. The
 * same for every caller: it is about the installation, not about anybody's objects.
 *
 * @see https://kubernetes.io/docs/concepts/overview/kubernetes-api/#unaggregated-discovery
 */

import type { ApiDeps } from '#functions/api/deps.ts';
import { isTenantKind, noSuchPath } from '#functions/api/target.ts';
import type { MethodHandler } from '#http/methods.ts';
import type { Kind } from '#core/kind.ts';
import { byPriority } from '#core/kind-version.ts';

export interface DiscoveryHandlers {
  /** `/version` */
  readonly version: MethodHandler;
  /** `/api` */
  readonly coreVersions: MethodHandler;
  /** `/api/v1` */
  readonly coreResources: MethodHandler;
  /** `/apis` */
  readonly groups: MethodHandler;
  /** `/apis/{group}` */
  readonly group: MethodHandler;
  /** `/apis/{group}/{version}` */
  readonly resources: MethodHandler;
}

const OBJECT_VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update'];
const STATUS_VERBS = ['get', 'patch', 'update'];
/** Tenants as Kubernetes Namespaces, which are read here. */
const NAMESPACES = {
  name: 'namespaces',
  singularName: 'namespace',
  namespaced: false,
  kind: 'Namespace',
  verbs: ['get', 'list'],
  shortNames: ['ns'],
};
/** Kubernetes Events are read here, and written by controllers alone. */
const EVENTS = {
  name: 'events',
  singularName: 'event',
  namespaced: true,
  kind: 'Event',
  verbs: ['get', 'list'],
  shortNames: ['ev'],
};

/** What a tenant has and may have. */
const QUOTAS = {
  name: 'resourcequotas',
  singularName: 'resourcequota',
  namespaced: true,
  kind: 'ResourceQuota',
  verbs: ['get', 'list'],
  shortNames: ['quota'],
};

/** What was done by hand, for those who look for it. */
const FORCED_DELETIONS = {
  name: 'forceddeletions',
  singularName: 'forceddeletion',
  namespaced: true,
  kind: 'ForcedDeletion',
  verbs: ['list'],
};

export function discovery({ kinds, version }: ApiDeps): DiscoveryHandlers {
  const byGroup = Map.groupBy(kinds.all, (kind) => kind.group);
  const groups = [...byGroup].map(([name, members]) => groupOf(name, members));

  return {
    version: (c) => c.json(versionInfo(version)),
    coreVersions: (c) => c.json({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }),
    coreResources: (c) => c.json(resourceList('v1', [EVENTS, NAMESPACES, QUOTAS])),
    groups: (c) => c.json({ kind: 'APIGroupList', apiVersion: 'v1', groups }),
    group(c) {
      const found = groups.find(({ name }) => name === c.req.param('group'));
      if (!found) throw noSuchPath(c, 'there is no such group; GET /apis lists those that there are');
      return c.json({ kind: 'APIGroup', apiVersion: 'v1', ...found });
    },
    resources(c) {
      const { group = '', version: wanted = '' } = c.req.param();
      const members = (byGroup.get(group) ?? []).filter((kind) => kind.version === wanted);
      if (members.length === 0) throw noSuchPath(c, 'no such version is served; GET /apis lists those that are');
      const served = members.flatMap(resourcesOf);
      if (members.some(isTenantKind)) served.push(FORCED_DELETIONS);
      return c.json(resourceList(`${group}/${wanted}`, served));
    },
  };
}

interface Group {
  readonly name: string;
  readonly versions: readonly GroupVersion[];
  readonly preferredVersion: GroupVersion | undefined;
}

interface GroupVersion {
  readonly groupVersion: string;
  readonly version: string;
}

function groupOf(name: string, members: readonly Kind[]): Group {
  const versions = [...new Set(members.map((kind) => kind.version))]
    .toSorted(byPriority)
    .map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions, preferredVersion: versions[0] };
}

function resourcesOf({ plural, singular, scope, kind }: Kind): object[] {
  const namespaced = scope === 'Namespaced';
  return [
    { name: plural, singularName: singular, namespaced, kind, verbs: OBJECT_VERBS },
    { name: `${plural}/status`, singularName: '', namespaced, kind, verbs: STATUS_VERBS },
  ];
}

function resourceList(groupVersion: string, resources: readonly object[]): object {
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

/** Clients parse `gitVersion`, and compare `major` and `minor`; some insist on every field of Kubernetes being a text. */
function versionInfo(version: string): object {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  const unknown = { gitCommit: '', gitTreeState: '', buildDate: '', goVersion: '', compiler: '' };
  return { major, minor, gitVersion: `v${version}`, ...unknown, platform: 'plumbline' };
}

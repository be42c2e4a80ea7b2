/** Blocks of tokens: what an operator takes from a subject, or from one token, before the token's time. */

import { type Caller, isOpenSet, SHARED_TENANT, type TenantSet } from '#core/identity.ts';

/** One block. Of a subject, whatever its tokens are, or of the one token with this id. */
export type TokenBlock = ({ readonly subject: string } | { readonly tokenId: string }) & {
  /** Absent: everything. */
  readonly tenant?: string;
};

/** What names a token. */
export type TokenNames = Pick<Caller, 'subject' | 'tokenId'>;

/** What is taken from a token: everything, or these tenants. */
export type Blocked = 'everything' | readonly string[];

const NOTHING: Blocked = [];

/** All blocks at one moment. */
export interface BlockSet {
  /** What of a token is blocked, whatever it grants: names are sorted, each once. */
  blockedOf(token: TokenNames): Blocked;
}

export function createBlockSet(blocks: readonly TokenBlock[]): BlockSet {
  const bySubject = Map.groupBy(blocks, (block) => ('subject' in block ? block.subject : undefined));
  const byTokenId = Map.groupBy(blocks, (block) => ('tokenId' in block ? block.tokenId : undefined));
  return {
    blockedOf({ subject, tokenId }) {
      const ofToken = tokenId === undefined ? undefined : byTokenId.get(tokenId);
      const found = [...(bySubject.get(subject) ?? []), ...(ofToken ?? [])];
      if (found.length === 0) return NOTHING;
      const tenants = found.map(({ tenant }) => tenant).filter((tenant) => tenant !== undefined);
      return tenants.length < found.length ? 'everything' : [...new Set(tenants)].toSorted();
    },
  };
}

/**
 * The caller without these tenants: as if its token did not name them. A caller of all tenants is then one of all but
 * these, and cannot write what is cluster-scoped.
 */
export function narrowCaller(caller: Caller, blockedTenants: readonly string[]): Caller {
  const { tenants } = caller;
  const concerned = blockedTenants.filter((name) => isGranted(tenants, name));
  if (concerned.length === 0) return caller;
  return {
    ...caller,
    tenants: isOpenSet(tenants) ? { allBut: concerned } : tenants.filter((name) => !concerned.includes(name)),
    blockedTenants: concerned,
  };
}

/** How what a caller sees has changed: by blocks that came and went. A stream that lost something must end at once. */
export function changeOfView(before: readonly string[], after: readonly string[]): 'lost' | 'gained' | undefined {
  if (after.some((name) => !before.includes(name))) return 'lost';
  return before.some((name) => !after.includes(name)) ? 'gained' : undefined;
}

/** Whether a token sees a tenant where nothing is blocked. */
export function isGranted(tenants: TenantSet, name: string): boolean {
  return isOpenSet(tenants) || tenants.includes(name) || name === SHARED_TENANT;
}

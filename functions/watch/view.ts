/** What a stream was opened for, as far as its end depends on it: whose token, and what of its tenants it shows. */

import { type Caller, isOpenSet, type TenantSet } from '#core/identity.ts';
import { type BlockSet, changeOfView, isGranted } from '#core/token-block.ts';

export interface View {
  /** Small: it is kept for each of thousands of streams. */
  readonly token: Pick<Caller, 'subject' | 'tokenId' | 'keyId' | 'expiresAtMs'>;
  /** What was asked for and is granted, but for blocks. */
  readonly granted: TenantSet;
  /** Named one by one: the stream cannot go on without one of them. Else it shows whatever its caller sees. */
  readonly tenantsAreNamed: boolean;
  /** Of what is granted: what it does not show, because it is blocked. */
  readonly blockedTenants: readonly string[];
}

const NONE: readonly string[] = [];

export function viewOf(caller: Caller, granted: TenantSet, tenantsAreNamed: boolean): View {
  const { subject, tokenId, keyId, expiresAtMs, blockedTenants = NONE } = caller;
  const token = {
    subject,
    ...(tokenId !== undefined && { tokenId }),
    ...(keyId !== undefined && { keyId }),
    expiresAtMs,
  };
  return { token, granted, tenantsAreNamed, blockedTenants: tenantsAreNamed ? NONE : blockedTenants };
}

/** What these blocks change for the stream: its token is blocked, it shows tenants that are lost, or lacks some. */
export function changeForView(view: View, blocks: BlockSet): 'blocked' | 'lost' | 'gained' | undefined {
  const { token, granted, blockedTenants } = view;
  const blocked = blocks.blockedOf(token);
  if (blocked === 'everything') return 'blocked';
  const concerned = view.tenantsAreNamed
    ? blocked.filter((name) => !isOpenSet(granted) && granted.includes(name))
    : blocked.filter((name) => isGranted(granted, name));
  return changeOfView(blockedTenants, concerned);
}

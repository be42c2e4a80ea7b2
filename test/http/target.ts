/** A deployment under test, as black-box suites see it: an address and tokens. */

import type { Role, TenantSet } from '#core/identity.ts';

export interface Grant {
  readonly roles: readonly Role[];
  readonly tenants: TenantSet;
  /** @default 'public' */
  readonly audience?: 'public' | 'private';
}

export interface Target {
  /** Of the public listener, without a slash at the end. */
  readonly baseUrl: string;
  /** A token that is valid there for the next minutes. */
  token(grant: Grant): Promise<string>;
}

/** Called in `beforeAll`: a suite is declared before its deployment runs. */
export type OpenTarget = () => Promise<Target>;

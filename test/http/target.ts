/** A deployment under test, as black-box suites see it: an address and tokens. */

import type { Audience, Role, TenantSet } from '#core/identity.ts';

export interface Grant {
  readonly roles: readonly Role[];
  readonly tenants: TenantSet;
  /** @default 'test' */
  readonly subject?: string;
  /** @default the target's */
  readonly audience?: Audience;
  /** Until it expires; negative for one that has. @default 600 */
  readonly ttlSeconds?: number;
}

export interface Target {
  /** Of one listener, without a slash at the end. */
  readonly baseUrl: string;
  /** Whose tokens the listener takes. */
  readonly audience: Audience;
  /** A token that is valid there for the next minutes. */
  token(grant: Grant): Promise<string>;
}

/** Called in `beforeAll`: a suite is declared before its deployment runs. */
export type OpenTarget = () => Promise<Target>;

/** All listeners of one deployment. */
export interface Deployment {
  /** One for users, one for controllers. */
  readonly targets: Readonly<Record<Audience, Target>>;
  /** Health and metrics; without a slash at the end. */
  readonly opsUrl: string;
}

export type OpenDeployment = () => Promise<Deployment>;

/** What a verified token says of its caller, by the claims of its issuer. */

import type { JWTPayload } from 'jose';
import * as v from 'valibot';

import type { GrantedTenants, Role } from '#core/identity.ts';
import { ROLES, SYSTEM_TENANT } from '#core/identity.ts';
import type { Pointer } from '#core/json-pointer.ts';
import { dnsLabelProblem } from '#core/names.ts';

/** Where an issuer's tokens say what their bearer may do: steps from the top of the claims. */
export interface ClaimPlaces {
  readonly tenants: Pointer;
  readonly roles: Pointer;
}

export const DEFAULT_CLAIM_PLACES: ClaimPlaces = { tenants: ['tenants'], roles: ['roles'] };

export interface Claims {
  readonly subject: string;
  readonly tokenId?: string;
  readonly roles: readonly Role[];
  readonly tenants: GrantedTenants;
}

const MAX_TENANTS = 1024;
const ALL = '*';

/** Subjects and ids are stored and compared: PostgreSQL holds neither NUL nor half of a surrogate pair. */
const nameSchema = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(253),
  v.check((name) => name.isWellFormed() && !name.includes('\0')),
);

const tenantSchema = v.pipe(
  v.string(),
  v.check((name) => dnsLabelProblem(name) === undefined),
);

const claimsSchema = v.object({
  sub: nameSchema,
  jti: v.exactOptional(nameSchema),
  roles: v.pipe(v.array(v.string()), v.maxLength(100)),
  tenants: v.union([
    v.literal(ALL),
    // Some issuers can only make lists.
    v.strictTuple([v.literal(ALL)]),
    v.pipe(v.array(tenantSchema), v.maxLength(MAX_TENANTS)),
  ]),
});

/** The claims, or a text that says which are not usable, and what is needed. Roles that mean nothing here are left out. */
export function readClaims(payload: JWTPayload, places: ClaimPlaces): Claims | string {
  const given = {
    sub: payload.sub,
    ...(payload.jti !== undefined && { jti: payload.jti }),
    roles: valueAt(payload, places.roles),
    tenants: valueAt(payload, places.tenants),
  };
  const result = v.safeParse(claimsSchema, given);
  const names = { sub: 'sub', jti: 'jti', roles: places.roles.join('.'), tenants: places.tenants.join('.') };
  if (!result.success) {
    const wrong = new Set(result.issues.map((issue) => v.getDotPath(issue)?.split('.')[0] as keyof typeof names));
    const named = [...wrong].map((name) => names[name] ?? name).join(', ');
    return `the token's claims are not usable: ${named}; needed are sub, ${names.roles} (a list) and ${names.tenants} (a list of names, or "*"); sub and jti have at most 253 characters`;
  }
  const { sub, jti, roles, tenants } = result.output;
  return {
    subject: sub,
    ...(jti !== undefined && { tokenId: jti }),
    roles: roles.filter((role): role is Role => ROLES.some((known) => known === role)),
    // Who may see all tenants sees `system`: its name alone gives nothing.
    tenants: tenants.includes(ALL) ? ALL : [...new Set(tenants)].filter((name) => name !== SYSTEM_TENANT).toSorted(),
  };
}

function valueAt(payload: JWTPayload, place: Pointer): unknown {
  let value: unknown = payload;
  for (const step of place) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

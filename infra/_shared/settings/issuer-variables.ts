/** The environment variables that name who issues tokens. */

import * as v from 'valibot';
import type { Audience } from '#core/identity.ts';
import { parsePointer, type Pointer } from '#core/json-pointer.ts';
import { audienceClaim } from '#http/authenticate.ts';

/** Set together or not at all. */
export const ISSUER_VARIABLES: readonly ['TOKEN_ISSUER', 'TOKEN_JWKS_URL'] = ['TOKEN_ISSUER', 'TOKEN_JWKS_URL'];

export interface IssuerConfig {
  /** The claim `iss`, to the letter. */
  readonly issuer: string;
  readonly jwksUrl: string;
  /** What tokens for each listener have as `aud`. */
  readonly audienceNames: Readonly<Record<Audience, string>>;
  readonly claims: { readonly tenants: Pointer; readonly roles: Pointer };
}

export interface IssuerVariables {
  readonly TOKEN_ISSUER: string | undefined;
  readonly TOKEN_JWKS_URL: string | undefined;
  readonly TOKEN_PUBLIC_AUDIENCE: string;
  readonly TOKEN_PRIVATE_AUDIENCE: string;
  readonly TOKEN_TENANTS_CLAIM: Pointer;
  readonly TOKEN_ROLES_CLAIM: Pointer;
}

type Entries = { readonly [Name in keyof IssuerVariables]: v.GenericSchema<string | undefined, IssuerVariables[Name]> };

/** Entries of a `v.object`. */
export function issuerVariables(): Entries {
  return {
    TOKEN_ISSUER: v.optional(text('what tokens have as "iss", up to 1000 characters')),
    TOKEN_JWKS_URL: v.optional(
      v.pipe(
        v.string(),
        v.check(isKeySetUrl, 'an https URL without a user and password; http only for 127.0.0.1, [::1] and localhost'),
      ),
    ),
    TOKEN_PUBLIC_AUDIENCE: v.optional(text('an audience, up to 1000 characters'), audienceClaim('public')),
    TOKEN_PRIVATE_AUDIENCE: v.optional(text('an audience, up to 1000 characters'), audienceClaim('private')),
    TOKEN_TENANTS_CLAIM: v.optional(claim(), 'tenants'),
    TOKEN_ROLES_CLAIM: v.optional(claim(), 'roles'),
  };
}

/** Undefined: this installation has no issuer. */
export function issuerConfig(variables: IssuerVariables): IssuerConfig | undefined {
  const { TOKEN_ISSUER: issuer, TOKEN_JWKS_URL: jwksUrl } = variables;
  if (issuer === undefined || jwksUrl === undefined) return undefined;
  return {
    issuer,
    jwksUrl,
    audienceNames: { public: variables.TOKEN_PUBLIC_AUDIENCE, private: variables.TOKEN_PRIVATE_AUDIENCE },
    claims: { tenants: variables.TOKEN_TENANTS_CLAIM, roles: variables.TOKEN_ROLES_CLAIM },
  };
}

function text(allowed: string) {
  return v.pipe(
    v.string(),
    v.check((value) => value.trim() === value && value.length <= 1_000, allowed),
  );
}

/** A name may hold dots and slashes, as those of some issuers are URLs; what begins with a slash is a JSON Pointer. */
function claim() {
  const allowed = 'the name of a claim, such as roles, or a JSON Pointer to one, such as /realm_access/roles';
  return v.pipe(
    v.string(),
    v.check((value) => placeOf(value) !== undefined, allowed),
    v.transform((value) => placeOf(value) ?? []),
  );
}

function placeOf(value: string): Pointer | undefined {
  if (!value.startsWith('/')) return value.trim() === value ? [value] : undefined;
  try {
    return parsePointer(value);
  } catch {
    return undefined;
  }
}

function isKeySetUrl(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** Of a parsed URL: IPv4 addresses are in their one form there, and names in lower case. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}

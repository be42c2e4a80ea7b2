/** Who calls: a JWT in `Authorization: Bearer`, checked for one audience. Its claims become the `Caller`. */

import type { MiddlewareHandler } from 'hono';
import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import * as v from 'valibot';

import { admit } from '#http/admit.ts';
import type { HttpEnv } from '#http/app.ts';
import { ROLES, type Audience, type Caller, type Role } from '#core/identity.ts';
import { dnsLabelProblem } from '#core/names.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { StatusError } from '#core/status-error.ts';

export interface AuthenticateOptions {
  /** Resolves the key that a token names: `createLocalJWKSet`, `createRemoteJWKSet`, or one of your own. */
  readonly keys: JWTVerifyGetKey;
  /** The audience of this listener. A token for another one is refused. */
  readonly audience: Audience;
  readonly issuer: string;
}

/** Algorithms are pinned: a token cannot choose a weaker one, nor a symmetric one. */
const ALGORITHMS = ['EdDSA', 'ES256', 'RS256'];
const CLOCK_SKEW_SECONDS = 60;
const MAX_TOKEN_CHARACTERS = 8192;
const MAX_TENANTS = 1024;

const claimsSchema = v.object({
  sub: v.pipe(v.string(), v.minLength(1), v.maxLength(253)),
  jti: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.maxLength(253))),
  roles: v.pipe(v.array(v.string()), v.maxLength(100)),
  tenants: v.union([
    v.literal('*'),
    v.pipe(
      v.array(
        v.pipe(
          v.string(),
          v.check((name) => dnsLabelProblem(name) === undefined),
        ),
      ),
      v.maxLength(MAX_TENANTS),
    ),
  ]),
});

/** The `aud` claim of tokens for a listener. */
export function audienceClaim(audience: Audience): string {
  return `plumbline/${audience}`;
}

export interface MiddlewareOptions extends AuthenticateOptions {
  readonly blocks: TokenBlocks;
}

/** Sets `caller`, without the tenants that are blocked for it, or answers 401 and says why. */
export function authenticate({ blocks, ...options }: MiddlewareOptions): MiddlewareHandler<HttpEnv> {
  const identify = createAuthenticator(options);
  return async (c, next) => {
    c.set('caller', await admit(blocks, await identify(c.req.header('authorization'))));
    await next();
  };
}

/**
 * Turns an `Authorization` header into its caller.
 * @returns a function that throws {StatusError}: Unauthorized, in words that never repeat the token;
 * ServiceUnavailable when the keys cannot be had.
 */
export function createAuthenticator(
  options: AuthenticateOptions,
): (authorization: string | undefined) => Promise<Caller> {
  const { keys, audience, issuer } = options;
  const verifyOptions = {
    algorithms: ALGORITHMS,
    audience: audienceClaim(audience),
    issuer,
    clockTolerance: CLOCK_SKEW_SECONDS,
    requiredClaims: ['exp', 'sub'],
  };

  return async (authorization) => {
    const token = bearerToken(authorization);
    const payload = await jwtVerify(token, keys, verifyOptions).then(
      (verified) => verified.payload,
      (error: unknown) => {
        throw refusal(error);
      },
    );
    return callerOf(payload);
  };

  function callerOf(payload: JWTPayload): Caller {
    const claims = v.safeParse(claimsSchema, payload);
    if (!claims.success) {
      const names = [...new Set(claims.issues.map((issue) => v.getDotPath(issue)?.split('.')[0] ?? 'claims'))];
      throw unauthorized(
        `the token's claims are not usable: ${names.join(', ')}; needed are sub, roles (a list) and tenants (a list of names, or "*"); sub and jti have at most 253 characters`,
      );
    }
    const { sub, jti, roles, tenants } = claims.output;
    return {
      audience,
      subject: sub,
      ...(jti !== undefined && { tokenId: jti }),
      roles: roles.filter((role): role is Role => ROLES.some((known) => known === role)),
      tenants: tenants === '*' ? '*' : [...new Set(tenants)].toSorted(),
      expiresAtMs: ((payload.exp ?? 0) + CLOCK_SKEW_SECONDS) * 1000,
    };
  }

  function refusal(error: unknown): StatusError {
    if (error instanceof errors.JWTExpired) return unauthorized('the token has expired; get a new one');
    if (error instanceof errors.JWTClaimValidationFailed) return unauthorized(claimProblem(error));
    if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey) {
      return unauthorized('the token is not signed by a key that this server trusts');
    }
    if (error instanceof errors.JOSEAlgNotAllowed) {
      return unauthorized(`the token's algorithm is not allowed; allowed are ${ALGORITHMS.join(', ')}`);
    }
    if (error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError)) {
      return new StatusError('ServiceUnavailable', 'the keys that tokens are checked with cannot be had; try again', {
        details: { retryAfterSeconds: 1 },
        cause: error,
      });
    }
    return unauthorized('the token is malformed; send "Authorization: Bearer <JWT>"');
  }

  function claimProblem(error: errors.JWTClaimValidationFailed): string {
    if (error.claim === 'aud') {
      return `the token is for another audience; this listener takes tokens for "${audienceClaim(audience)}"`;
    }
    if (error.claim === 'iss') return `the token is by another issuer; this server takes tokens by "${issuer}"`;
    if (error.claim === 'nbf') return 'the token is not valid yet';
    return error.reason === 'missing'
      ? `the token has no claim "${error.claim}"`
      : `the token's claim "${error.claim}" is wrong`;
  }
}

function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined || authorization === '') {
    throw unauthorized('a token is needed: send the header "Authorization: Bearer <JWT>"');
  }
  const [, token] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
  if (token === undefined) throw unauthorized('the header Authorization is not of the form "Bearer <JWT>"');
  if (token.length > MAX_TOKEN_CHARACTERS)
    throw unauthorized(`the token has more than ${MAX_TOKEN_CHARACTERS} characters`);
  return token;
}

function unauthorized(message: string): StatusError {
  return new StatusError('Unauthorized', message);
}

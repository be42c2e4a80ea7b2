/** Who calls: a JWT in `Authorization: Bearer`, checked for one audience. Its claims become the `Caller`. */

import type { MiddlewareHandler } from 'hono';
import { base64url, decodeJwt, errors, jwtVerify, type JWTVerifyGetKey, type JWTVerifyResult } from 'jose';

import { admit } from '#http/admit.ts';
import { rememberTokens } from '#http/checked-tokens.ts';
import type { HttpEnv } from '#http/app.ts';
import { type ClaimPlaces, DEFAULT_CLAIM_PLACES, readClaims } from '#http/token-claims.ts';
import { duplicateKey } from '#core/duplicate-key.ts';
import type { Audience, Caller } from '#core/identity.ts';
import type { TokenBlocks } from '#core/ports/token-blocks.ts';
import { StatusError } from '#core/status-error.ts';

export interface AuthenticateOptions {
  /**
   * Resolves the key that a token names. What it throws that is no error of jose's own means that the keys cannot be had:
   * a `StatusError` says so itself.
   */
  readonly keys: JWTVerifyGetKey;
  /** The audience of this listener. A token for another one is refused. */
  readonly audience: Audience;
  /** What tokens for it have as `aud`. @default `audienceClaim(audience)` */
  readonly audienceName?: string;
  readonly issuer: string;
  /** @default the claims `tenants` and `roles` */
  readonly claims?: ClaimPlaces;
}

/** Algorithms are pinned: a token cannot choose a weaker one, nor a symmetric one. */
const ALGORITHMS = ['EdDSA', 'ES256', 'RS256'];
/**
 * A token that was made for something else, such as a logout token of the same issuer, says so here.
 * @see https://www.rfc-editor.org/rfc/rfc8725#section-3.11
 */
const TYPES = [undefined, 'jwt', 'at+jwt'];
const CLOCK_SKEW_SECONDS = 60;
const EXPIRED = 'the token has expired; get a new one';
const MAX_TOKEN_CHARACTERS = 8192;

/** The `aud` claim of tokens for a listener. */
export function audienceClaim(audience: Audience): string {
  return `plumbline/${audience}`;
}

/** See `createAuthenticator`. */
export type Authenticator = (authorization: string | undefined) => Promise<Caller>;

export interface MiddlewareOptions extends AuthenticateOptions {
  readonly blocks: TokenBlocks;
}

/** Sets `caller`, without the tenants that are blocked for it, or answers 401 and says why. */
export function authenticate({ blocks, ...options }: MiddlewareOptions): MiddlewareHandler<HttpEnv> {
  return authenticateBy(createAuthenticator(options), blocks);
}

/** The same by an authenticator that others use too: it remembers tokens. */
export function authenticateBy(identify: Authenticator, blocks: TokenBlocks): MiddlewareHandler<HttpEnv> {
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
export function createAuthenticator(options: AuthenticateOptions): Authenticator {
  const { keys, audience, issuer, claims = DEFAULT_CLAIM_PLACES } = options;
  const audienceName = options.audienceName ?? audienceClaim(audience);
  const otherIssuer = `the token is by another issuer; this server takes tokens by "${issuer}"`;
  const verifyOptions = {
    algorithms: ALGORITHMS,
    audience: audienceName,
    issuer,
    clockTolerance: CLOCK_SKEW_SECONDS,
    requiredClaims: ['exp', 'sub'],
  };

  const checked = rememberTokens(keys);

  return async (authorization) => {
    const token = bearerToken(authorization);
    return identify(token).catch((error: unknown) => {
      throw refusal(error);
    });
  };

  async function identify(token: string): Promise<Caller> {
    const known = await checked.callerOf(token);
    if (known) return known;
    let asked: Parameters<JWTVerifyGetKey> | undefined;
    // To look for a key can take a read of the issuer's: not for what no key makes good.
    const find: JWTVerifyGetKey = (...by) => {
      const { iss, exp } = decodeJwt(token);
      if (iss !== issuer) throw unauthorized(otherIssuer);
      if (typeof exp === 'number' && exp <= Date.now() / 1000 - CLOCK_SKEW_SECONDS) throw unauthorized(EXPIRED);
      asked = by;
      return keys(...by);
    };
    const verified = await jwtVerify(token, find, verifyOptions);
    assertPlain(token, verified);
    const caller = callerOf(verified);
    if (asked) checked.add(token, { caller, asked, key: verified.key });
    return caller;
  }

  function callerOf({ payload, protectedHeader: { kid } }: JWTVerifyResult): Caller {
    const read = readClaims(payload, claims);
    if (typeof read === 'string') throw unauthorized(read);
    const expiresAtMs = ((payload.exp ?? 0) + CLOCK_SKEW_SECONDS) * 1000;
    return { audience, ...read, ...(kid !== undefined && { keyId: kid }), expiresAtMs };
  }

  function refusal(error: unknown): StatusError {
    if (error instanceof StatusError) return error;
    if (error instanceof errors.JWTExpired) return unauthorized(EXPIRED);
    if (error instanceof errors.JWTClaimValidationFailed) return unauthorized(claimProblem(error));
    if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey) {
      return unauthorized('the token is not signed by a key that this server trusts');
    }
    if (error instanceof errors.JOSEAlgNotAllowed) {
      return unauthorized(`the token's algorithm is not allowed; allowed are ${ALGORITHMS.join(', ')}`);
    }
    if (error instanceof errors.JWKSMultipleMatchingKeys) {
      return unauthorized('the token does not name its key, and several fit it; its header needs a "kid"');
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
      return `the token is for another audience; this listener takes tokens for "${audienceName}"`;
    }
    if (error.claim === 'iss') return otherIssuer;
    if (error.claim === 'nbf' && error.reason === 'check_failed') return 'the token is not valid yet';
    return error.reason === 'missing'
      ? `the token has no claim "${error.claim}"`
      : `the token's claim "${error.claim}" is wrong`;
  }
}

/** What a good signature does not tell: that the token is one of this use, and means the same to every reader. */
function assertPlain(token: string, { protectedHeader, payload }: JWTVerifyResult): void {
  const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
  if (!TYPES.includes(type)) throw unauthorized('the token is of another type; its header "typ" may be JWT or at+jwt');
  const { exp, iat } = payload;
  if (!Number.isFinite(exp)) throw unauthorized('the token\'s claim "exp" is wrong');
  if (iat !== undefined && iat > Date.now() / 1000 + CLOCK_SKEW_SECONDS) {
    throw unauthorized('the token was issued in the future');
  }
  for (const part of token.split('.', 2)) {
    if (duplicateKey(new TextDecoder().decode(base64url.decode(part))) !== undefined) {
      throw unauthorized('the token has a claim, or a field of its header, twice');
    }
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

/** Whose tokens are taken: the configured issuer's, or those of the development key, never both. */

import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose';
import type { Registry } from 'prom-client';
import { remoteKeys } from '#adapters/jwks/remote-keys.ts';
import { keysAgeGauge } from '#adapters/node/key-metrics.ts';
import type { ReadinessCheck } from '#adapters/node/readiness.ts';
import type { Audience } from '#core/identity.ts';
import type { Logger } from '#core/ports/logger.ts';
import type { AuthenticateOptions } from '#http/authenticate.ts';
import type { DevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import type { IssuerConfig } from '#infra/_shared/settings/issuer-variables.ts';

export interface TokenIssuer {
  /** How a listener checks tokens. */
  optionsFor(audience: Audience): AuthenticateOptions;
  /** See `HubDeps`. */
  readonly trustsKey?: (keyId: string) => boolean;
  /** Whether tokens can be checked at all. */
  readonly checks: readonly ReadinessCheck[];
}

export interface RemoteIssuerDeps {
  readonly logger: Logger;
  readonly registry: Registry;
}

/** Follows the keys of an issuer until the signal aborts. */
export function remoteIssuer(
  config: IssuerConfig,
  { logger, registry }: RemoteIssuerDeps,
  signal: AbortSignal,
): TokenIssuer {
  const { jwksUrl } = config;
  const keys = remoteKeys({
    url: jwksUrl,
    signal,
    onChange: (keyIds) => logger.info({ jwksUrl, keyIds }, 'keys of tokens were read'),
    onError: (error) =>
      logger.warn({ jwksUrl, err: error }, 'keys of tokens cannot be read; those that there are go on'),
    onRecovery: () => logger.info({ jwksUrl }, 'keys of tokens can be read again'),
  });
  keysAgeGauge(registry, keys.ageMs);
  return {
    optionsFor: (audience) => optionsFor(config, keys.find, audience),
    trustsKey: keys.trusts,
    checks: [
      {
        name: 'identity',
        async check(): Promise<void> {
          const problem = keys.problem();
          if (problem !== undefined) throw new Error(problem);
        },
      },
    ],
  };
}

/** How a listener checks the tokens of a configured issuer, with its keys. */
export function optionsFor(
  { issuer, audienceNames, claims }: IssuerConfig,
  keys: JWTVerifyGetKey,
  audience: Audience,
): AuthenticateOptions {
  return { keys, audience, audienceName: audienceNames[audience], issuer, claims };
}

/** The tokens that `npm start` and `npm run token` make. */
export function developmentIssuer({ issuer, jwks }: DevelopmentIdentity): TokenIssuer {
  const keys = createLocalJWKSet(jwks);
  return { optionsFor: (audience) => ({ keys, audience, issuer }), checks: [] };
}

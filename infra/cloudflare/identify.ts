/** Who calls, by this isolate: tokens that were checked are remembered between requests. */

import type { Audience } from '#core/identity.ts';
import { type Authenticator, createAuthenticator } from '#http/authenticate.ts';
import { edge, tokenKeys } from '#infra/cloudflare/installation.ts';
import { optionsFor } from '#infra/_shared/tokens/token-issuer.ts';

export const identify: Readonly<Record<Audience, Authenticator>> = {
  public: createAuthenticator(optionsFor(edge.issuer, tokenKeys, 'public')),
  private: createAuthenticator(optionsFor(edge.issuer, tokenKeys, 'private')),
};

/**
 * Who the server takes the caller for, as `kubectl auth whoami` asks it. What is sent says nothing and is not read, in
 * whatever form it comes: newer clients send protobuf, and take JSON.
 *
 * @see https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/self-subject-review-v1/
 */

import type { Caller } from '#core/identity.ts';
import type { MethodHandler } from '#http/methods.ts';
import { StatusError } from '#core/status-error.ts';

export const WHO_AM_I_PATH = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

/** Nothing but what the token and its blocks say: whoever has a good token may ask. */
export const whoAmI: MethodHandler = (c) => {
  const userInfo = userInfoOf(c.get('caller'));
  const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: {} };
  return c.json({ ...review, status: { userInfo } }, 201);
};

/** What `kubectl auth can-i` asks. */
export const ACCESS_REVIEWS_PATH = '/apis/authorization.k8s.io/v1/:review';

/** @throws {StatusError} NotFound, with the place where the answer is. */
export const noAccessReviews: MethodHandler = () => {
  throw new StatusError(
    'NotFound',
    'there are no access reviews here: what a token may do follows from its roles, which "kubectl auth whoami" tells',
  );
};

function userInfoOf({ audience, subject, tokenId, roles, tenants, expiresAtMs, blockedTenants }: Caller): object {
  const named = typeof tenants === 'string' || 'allBut' in tenants ? ['*'] : tenants;
  return {
    username: subject,
    groups: roles,
    extra: {
      'plumbline.dev/audience': [audience],
      'plumbline.dev/tenants': named,
      ...(blockedTenants && { 'plumbline.dev/blocked-tenants': blockedTenants }),
      ...(tokenId !== undefined && { 'plumbline.dev/token-id': [tokenId] }),
      'plumbline.dev/expires': expiryOf(expiresAtMs),
    },
  };
}

/** None for what is beyond the calendar. */
function expiryOf(expiresAtMs: number): readonly string[] {
  const date = new Date(expiresAtMs);
  return Number.isNaN(date.getTime()) ? [] : [date.toISOString()];
}

/** GET of what was taken off by hand: for whoever may read the tenant. */

import type { ApiDeps } from '#functions/api/deps.ts';
import { pageQuery, refuseWatch } from '#functions/api/parameters.ts';
import { assertVisible } from '#functions/api/target.ts';
import { tenantExists } from '#functions/api/tenants.ts';
import { may } from '#http/authorize.ts';
import { tenantNotFound } from '#http/errors.ts';
import type { MethodHandler } from '#http/methods.ts';
import { continueBinding } from '#core/continue-token.ts';
import { SYSTEM_TENANT, visibleTo } from '#core/identity.ts';
import type { ForcedDeletion } from '#core/ports/forced-deletions.ts';
import { StatusError } from '#core/status-error.ts';

const API_VERSION = 'plumbline.dev/v1';

/** Of one tenant, or of all that the caller sees: the latest first, in pages. */
export function listForcedDeletions({ forcedDeletions, store, continueTokens }: ApiDeps): MethodHandler {
  return async (c) => {
    const caller = c.get('caller');
    const visible = visibleTo(caller);
    const tenant = c.req.param('tenant');
    if (tenant !== undefined) assertVisible(tenant, visible);
    if (!may(caller, 'list', { scope: 'Namespaced', tenant })) {
      const message = `${JSON.stringify(caller.subject)} has no role that may list forced deletions`;
      throw new StatusError('Forbidden', message, { details: { kind: 'forceddeletions' } });
    }
    refuseWatch(c, 'forced deletions cannot be watched; list them again');
    const { limit, continueToken } = pageQuery(c);
    const binding = continueBinding({
      audience: caller.audience,
      tenants: visible.tenants,
      group: 'plumbline.dev',
      kind: 'ForcedDeletion',
      ...(tenant !== undefined && { tenant }),
    });
    const before = continueToken === undefined ? undefined : continueTokens.open(continueToken, binding).after.name;
    const found = await forcedDeletions.list(visible, {
      limit: limit + 1,
      ...(tenant !== undefined && { tenant }),
      ...(before !== undefined && { before: BigInt(before) }),
    });
    if (tenant !== undefined && found.length === 0 && !(await tenantExists(store, tenant)))
      throw tenantNotFound(tenant);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return c.json({
      apiVersion: API_VERSION,
      kind: 'ForcedDeletionList',
      metadata: last
        ? { continue: continueTokens.seal({ after: { tenant: '', name: String(last.id) } }, binding) }
        : {},
      items: page.map(shown),
    });
  };
}

function shown(deletion: ForcedDeletion): object {
  const { id, at, tenant, group, kind, name, uid, removedFinalizers, deletionRequestedAt, by, reason } = deletion;
  return {
    apiVersion: API_VERSION,
    kind: 'ForcedDeletion',
    metadata: {
      name: `${name.slice(0, 230)}.${id}`,
      ...(tenant !== SYSTEM_TENANT && { namespace: tenant }),
      creationTimestamp: at.toISOString(),
    },
    object: { group, kind, name, uid },
    removedFinalizers,
    deletionRequestedAt: deletionRequestedAt.toISOString(),
    by,
    reason,
  };
}

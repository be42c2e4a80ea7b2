/** GET of `/secrets`, for admins and controllers on the private listener: what no other answer and no event has. */

import type { ApiDeps } from '#functions/api/deps.ts';
import { objectNotFound } from '#functions/api/errors.ts';
import { noSuchPath, objectTarget } from '#functions/api/target.ts';
import { authorize } from '#http/authorize.ts';
import { answerNotFound } from '#http/errors.ts';
import type { MethodHandler } from '#http/methods.ts';
import { parseJsonObject } from '#core/json.ts';
import { apiVersionOf, resourceOf } from '#core/kind.ts';
import { onlySecrets } from '#core/secret-paths.ts';

/** For the other listener there is nothing at the path, as at any that does not exist. */
export function onPrivateListener(handler: MethodHandler): MethodHandler {
  return (c) => (c.get('caller').audience === 'private' ? handler(c) : answerNotFound(c));
}

/**
 * The secret paths of spec and status as an object of kind `<Kind>Secrets`, at the resourceVersion that they were read
 * at. Elements of lists keep their places. Every access is logged, without what was read.
 */
export function readSecrets({ store, kinds, logger }: ApiDeps): MethodHandler {
  return async (c) => {
    const { kind, caller, scope, key, address } = objectTarget(c, kinds);
    authorize(caller, 'secrets', kind, key.tenant);
    if (kind.redact.length === 0) throw noSuchPath(c, `${resourceOf(kind)} have no secret fields`);
    const row = await store.getForUpdate(scope, key);
    if (!row) throw objectNotFound(kind, key.name);
    const { name, uid, resourceVersion } = row;
    logger.info(
      {
        requestId: c.get('requestId'),
        subject: caller.subject,
        tenant: key.tenant,
        kind: `${kind.group}/${kind.kind}`,
        name,
        uid,
      },
      'secrets were read',
    );
    const body = {
      apiVersion: apiVersionOf(kind),
      kind: `${kind.kind}Secrets`,
      metadata: {
        name,
        ...(address.namespace !== undefined && { namespace: address.namespace }),
        uid,
        resourceVersion,
      },
      spec: onlySecrets('spec', parseJsonObject(row.spec), kind.redact),
      status: onlySecrets('status', parseJsonObject(row.status), kind.redact),
    };
    return c.body(`${JSON.stringify(body)}\n`, 200, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
    });
  };
}

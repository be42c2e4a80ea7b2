/**
 * The resource API, on the conventions of Kubernetes: any kind of the registry, objects in and out, errors as `Status`.
 * It holds no state: any number of instances serve one store.
 *
 * @see https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
 */

import type { Hono } from 'hono';
import { compress } from 'hono/compress';

import { createObject } from '#functions/api/create.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { discovery } from '#functions/api/discovery.ts';
import { listEvents, readEvent } from '#functions/api/events.ts';
import { forceDelete } from '#functions/api/force-delete.ts';
import { listForcedDeletions } from '#functions/api/forced-deletions.ts';
import { listObjects } from '#functions/api/list.ts';
import { serveOpenApi } from '#functions/api/openapi/serve.ts';
import { listNamespaces, readNamespace } from '#functions/api/namespaces.ts';
import { patchOne } from '#functions/api/patch.ts';
import { readOne } from '#functions/api/read.ts';
import { removeObject } from '#functions/api/remove.ts';
import { listQuotas, readQuota } from '#functions/api/resource-quotas.ts';
import { replaceObject } from '#functions/api/replace.ts';
import { onPrivateListener, readSecrets } from '#functions/api/secrets.ts';
import { patchStatus, replaceStatus } from '#functions/api/status.ts';
import { ACCESS_REVIEWS_PATH, noAccessReviews, WHO_AM_I_PATH, whoAmI } from '#functions/api/who-am-i.ts';
import { createHttpApp, type HttpEnv } from '#http/app.ts';
import { compressLarge } from '#http/compression.ts';
import { methods } from '#http/methods.ts';

export type { ApiDeps } from '#functions/api/deps.ts';

const ROOT = '/apis/:group/:version';
const LISTS = [`${ROOT}/namespaces/:tenant/:plural`, `${ROOT}/:plural`];

/** A complete application: it answers every path, with 404 where there is nothing. */
export function createApi(deps: ApiDeps): Hono<HttpEnv> {
  const app = createHttpApp(deps);
  const collection = methods({ GET: listObjects(deps), POST: createObject(deps) });
  const object = methods({
    GET: readOne(deps),
    PUT: replaceObject(deps),
    PATCH: patchOne(deps),
    DELETE: removeObject(deps),
  });
  const secrets = onPrivateListener(methods({ GET: readSecrets(deps) }));
  const status = methods({ GET: readOne(deps), PUT: replaceStatus(deps), PATCH: patchStatus(deps) });
  const force = methods({ POST: forceDelete(deps) });
  const forced = methods({ GET: listForcedDeletions(deps) });
  const discover = discovery(deps);
  const openApi = serveOpenApi(deps);

  app.all('/', methods({ GET: (c) => c.json(about(deps.version)) }));
  for (const path of ['/version', '/version/']) app.all(path, methods({ GET: discover.version }));
  app.use('/apis/*', deps.authenticate);
  app.use('/api/*', deps.authenticate);
  app.use('/openapi/*', deps.authenticate);
  app.use('/openapi/*', compress());
  app.all('/openapi/v3', methods({ GET: openApi.index }));
  app.all('/openapi/v3/apis/:group/:version', methods({ GET: openApi.document }));
  // Clients made from Kubernetes' own OpenAPI document ask with the slash.
  for (const path of ['/api', '/api/']) app.all(path, methods({ GET: discover.coreVersions }));
  app.all('/api/v1', methods({ GET: discover.coreResources }));
  for (const path of ['/apis', '/apis/']) app.all(path, methods({ GET: discover.groups }));
  app.all(WHO_AM_I_PATH, methods({ POST: whoAmI }));
  app.all(ACCESS_REVIEWS_PATH, noAccessReviews);
  app.all('/apis/:group', methods({ GET: discover.group }));
  app.all(ROOT, methods({ GET: discover.resources }));
  for (const path of [...LISTS, '/api/v1/namespaces']) app.get(path, compressLarge());
  app.all('/api/v1/namespaces', methods({ GET: listNamespaces(deps) }));
  app.all('/api/v1/namespaces/:tenant', methods({ GET: readNamespace(deps) }));
  app.all('/api/v1/events', methods({ GET: listEvents(deps) }));
  app.all('/api/v1/namespaces/:tenant/events', methods({ GET: listEvents(deps) }));
  app.all('/api/v1/namespaces/:tenant/events/:name', methods({ GET: readEvent(deps) }));
  app.all('/api/v1/namespaces/:tenant/resourcequotas', methods({ GET: listQuotas(deps) }));
  app.all('/api/v1/namespaces/:tenant/resourcequotas/:name', methods({ GET: readQuota(deps) }));
  app.all('/apis/plumbline.dev/v1/namespaces/:tenant/forceddeletions', forced);
  app.all('/apis/plumbline.dev/v1/forceddeletions', forced);
  // Paths with a namespace come first: as a plural, "namespaces" is reserved.
  app.all(`${ROOT}/namespaces/:tenant/:plural`, collection);
  app.all(`${ROOT}/namespaces/:tenant/:plural/:name`, object);
  app.all(`${ROOT}/namespaces/:tenant/:plural/:name/status`, status);
  app.all(`${ROOT}/namespaces/:tenant/:plural/:name/secrets`, secrets);
  app.all(`${ROOT}/namespaces/:tenant/:plural/:name/force-delete`, force);
  app.all(`${ROOT}/:plural`, collection);
  app.all(`${ROOT}/:plural/:name`, object);
  app.all(`${ROOT}/:plural/:name/status`, status);
  app.all(`${ROOT}/:plural/:name/secrets`, secrets);
  app.all(`${ROOT}/:plural/:name/force-delete`, force);
  return app;
}

function about(version: string): object {
  return {
    name: 'plumbline',
    version,
    links: {
      tenants: '/apis/plumbline.dev/v1/tenants',
      events: '/watch/v1/events',
      openapi: '/openapi/v3',
    },
  };
}

/** Times what a listener answers. */

import type { HttpBindings } from '@hono/node-server';
import type { Metrics } from '#adapters/node/metrics.ts';

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** The same, with each answer in the metrics. */
export function timed(fetch: Fetch, metrics: Metrics): Fetch {
  return async (request, env) => {
    const stop = metrics.requests.startTimer({ method: request.method });
    const response = await fetch(request, env);
    stop({ code: response.status });
    return response;
  };
}

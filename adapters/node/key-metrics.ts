/** The Prometheus metric of the keys that tokens are checked with. */

import { Gauge, type Registry } from 'prom-client';

/** @param ageMs is asked at each scrape; while it is undefined, the keys were never read, and the gauge is absent. */
export function keysAgeGauge(registry: Registry, ageMs: () => number | undefined): Gauge {
  return new Gauge({
    name: 'plumbline_token_keys_age_seconds',
    help: "How long ago the issuer's keys were read; above 310 the issuer is away",
    registers: [registry],
    collect() {
      const age = ageMs();
      if (age === undefined) this.remove();
      else this.set(age / 1_000);
    },
  });
}

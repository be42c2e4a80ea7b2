/** Which brokers are new enough, by the versions of the requests that they know. */

import type { Broker } from '#adapters/kafka/client/cluster.ts';

/** What is needed of a request, and what kafkajs 2.2.4 speaks at most: a broker may know neither less nor only more. */
const NEEDED = {
  Produce: { apiKey: 0, version: 7 },
  Fetch: { apiKey: 1, version: 11 },
} as const;

/** Undefined when all is well. */
export function versionProblem(versions: Broker['versions']): string | undefined {
  for (const [name, { apiKey, version }] of Object.entries(NEEDED)) {
    const range = versions?.[apiKey];
    const known = range ? `knows ${range.minVersion} to ${range.maxVersion}` : 'does not know it';
    if (!range || range.maxVersion < version) {
      return `is too old: of the request ${name} version ${version} is needed, and it ${known}; Kafka 2.4 is the oldest`;
    }
    if (range.minVersion > version) {
      return `is too new: of the request ${name} version ${version} is the newest that is spoken here, and it ${known}`;
    }
  }
  return undefined;
}

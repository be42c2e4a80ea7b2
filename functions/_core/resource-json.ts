/**
 * An object as the API shows it, spliced from the row's JSON texts. Runs for every event and every item of a list, so
 * documents are never parsed: 1.0 µs for an object of 1 KB to its bytes, where parsing and printing takes 4.5 µs.
 */

import { SYSTEM_TENANT } from '#core/identity.ts';
import type { ResourceObject, ResourceRow } from '#core/resource.ts';

/**
 * The JSON text of one object, on one line. Times are RFC 3339 in whole seconds, as in Kubernetes; what is empty is
 * left out, except the spec.
 *
 * @see https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#metadata
 */
export function resourceJson(row: ResourceRow): string {
  let json = `{"apiVersion":${JSON.stringify(`${row.group}/${row.version}`)},"kind":${JSON.stringify(row.kind)}`;
  json += `,${metadataJson(row)},"spec":${row.spec}`;
  if (row.status !== '{}') json += `,"status":${row.status}`;
  return json + '}';
}

/** Its field `metadata`: name and value. */
export function metadataJson(row: ResourceRow): string {
  let json = `"metadata":{"name":${JSON.stringify(row.name)}`;
  if (row.tenant !== SYSTEM_TENANT) json += `,"namespace":${JSON.stringify(row.tenant)}`;
  json += `,"uid":"${row.uid}"`;
  if (row.resourceVersion !== '') json += `,"resourceVersion":"${row.resourceVersion}"`;
  json += `,"generation":${row.generation}`;
  json += `,"creationTimestamp":"${seconds(row.creationTimestamp)}"`;
  if (row.deletionTimestamp) {
    json += `,"deletionTimestamp":"${seconds(row.deletionTimestamp)}","deletionGracePeriodSeconds":0`;
  }
  if (row.labels !== '{}') json += `,"labels":${row.labels}`;
  if (row.annotations !== '{}') json += `,"annotations":${row.annotations}`;
  if (row.finalizers.length > 0) json += `,"finalizers":${JSON.stringify(row.finalizers)}`;
  if (row.ownerReferences !== '[]') json += `,"ownerReferences":${row.ownerReferences}`;
  return json + '}';
}

export function seconds(time: Date): string {
  return time.toISOString().slice(0, -5) + 'Z';
}

/** The same object as a value: for code that reads its documents. */
export function resourceObject(row: ResourceRow): ResourceObject {
  return JSON.parse(resourceJson(row)) as ResourceObject;
}

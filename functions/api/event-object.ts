/** What controllers told, as a Kubernetes Event of core/v1. */

import type { ObjectEvent } from '#core/ports/object-events.ts';

/** The JSON text of one Event. Times are RFC 3339 in whole seconds, as in Kubernetes. */
export function eventJson(event: ObjectEvent): string {
  const { namespace, name, uid, controller } = event;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: event.eventName,
      ...(namespace !== null && { namespace }),
      uid: event.id,
      creationTimestamp: seconds(event.firstAt),
    },
    involvedObject: {
      apiVersion: `${event.group}/${event.version}`,
      kind: event.kind,
      ...(!event.isClusterScoped && namespace !== null && { namespace }),
      name,
      uid,
    },
    reason: event.reason,
    message: event.message,
    type: event.type,
    count: event.count,
    firstTimestamp: seconds(event.firstAt),
    lastTimestamp: seconds(event.lastAt),
    eventTime: null,
    source: { component: controller },
    reportingComponent: controller,
    reportingInstance: '',
  });
}

function seconds(time: Date): string {
  return `${time.toISOString().slice(0, -5)}Z`;
}

/**
 * `plumbline/client`: for Node, browsers and workers, over nothing but `fetch`.
 *
 * - `watch`: changes in order, over all disconnections;
 * - `informer`: the objects of a kind, kept as they are;
 * - `consume`: a share of the changes, as a member of a group, each handled and confirmed.
 */

export type { RetryOptions } from '#infra/client/backoff.ts';
export type { Connection, Token } from '#infra/client/caller.ts';
export {
  consume,
  type ConsumeOptions,
  type Failure,
  type HandlerContext,
  type Membership,
} from '#infra/client/consume.ts';
export {
  BadRequest,
  Conflict,
  ConnectionError,
  CursorKeyRetired,
  CursorRefused,
  Expired,
  Forbidden,
  NotFound,
  ProtocolError,
  type Status,
  StatusError,
  StreamRecreated,
  Unauthorized,
} from '#infra/client/errors.ts';
export type { Delivery } from '#infra/client/group/delivery.ts';
export { informer, type Informer, type InformerKind, type InformerOptions } from '#infra/client/informer.ts';
export {
  type Bookmark,
  type Change,
  type CloudEvent,
  compareVersions,
  type EventType,
  type ObjectMetadata,
  type OwnerReference,
  type PlumblineObject,
} from '#infra/client/objects.ts';
export type { Start } from '#infra/client/place.ts';
export type { Selection } from '#infra/client/selection.ts';
export type { StreamOptions } from '#infra/client/stream.ts';
export { watch, type Watch, type WatchOptions } from '#infra/client/watch.ts';

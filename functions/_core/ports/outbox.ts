/** PORT. The outbox as a publisher sees it. */

/** How one attempt to publish a batch went. */
export interface PublishResult {
  /**
   * `published`: a batch moved to the log; `idle`: nothing to publish; `busy`: another publisher has the stream;
   * `held`: a quarantined record, or a topic that is not there, holds the stream; `quarantined`: its next record was
   * quarantined just now.
   */
  readonly outcome: 'published' | 'idle' | 'busy' | 'held' | 'quarantined';
  /** Events that were moved. */
  readonly published: number;
  /** Why the record was quarantined. */
  readonly reason?: string;
}

export interface BatchLimits {
  readonly maxCount: number;
  readonly maxBytes: number;
}

/** The batch cannot be published as it is, now or later: something in one of its records is at fault. */
export class RecordRejected extends Error {
  override readonly name = 'RecordRejected';
}

export interface Outbox {
  /** Streams that have records to publish and are not held; those that failed just now may be left out. */
  pendingStreams(): Promise<readonly bigint[]>;

  /**
   * Publishes the next batch of a stream, all or nothing: the lowest visible records in order, each under one number,
   * dense behind the frontier. A log outside of PostgreSQL may hold a number twice; readers keep the first. Any number of
   * processes may call it at once.
   * @throws {RecordRejected} for the records' fault; anything else is the log's, and trying again may help.
   */
  publishBatch(stream: bigint, limits: BatchLimits): Promise<PublishResult>;

  /** Holds a stream because its next record cannot be published. Nothing is dropped. */
  quarantineHead(stream: bigint, reason: string): Promise<void>;
}

/** How the outbox is doing, for metrics and readiness. */
export interface OutboxState {
  readonly records: number;
  /** Age of the oldest record; 0 when there is none. Streams that are held by quarantine count too. */
  readonly oldestSeconds: number;
  readonly quarantinedStreams: number;
  /** Streams whose topic is not made yet, or missing. */
  readonly unreadyTopics: number;
}

/** PORT. The streams of tenants through their lives, as the Tenant's controller sees them. */

/** What is known of the newest stream of a tenant. */
export interface TenantStream {
  /** Never reused. */
  readonly id: bigint;
  readonly log: 'postgres' | 'kafka';
  /** Where new events go; absent in the PostgreSQL log. */
  readonly topic: string | undefined;
  /** All that it ever had. */
  readonly topics: readonly string[];
  readonly isTopicReady: boolean;
  /** The brokers do not know it. */
  readonly isTopicMissing: boolean;
  /** Why the topic is not there yet. */
  readonly problem: string | undefined;
  /** Of the topic, as it was last set. */
  readonly retentionMs: number | undefined;
  readonly retentionBytes: number | undefined;
  /** By the database's clock. */
  readonly openForMs: number;
  /** No event will be added after those that are captured. */
  readonly isClosed: boolean;
  readonly isRemoved: boolean;
  /** Captured and not in the log yet; counted to 10,000. */
  readonly unpublished: number;
  /** Why its next record cannot be published, when it cannot. */
  readonly quarantine: string | undefined;
}

export interface TenantStreams {
  find(tenant: string): Promise<TenantStream | undefined>;

  /** What lives in a tenant: `plural.group` and how many. */
  objects(tenant: string): Promise<ReadonlyMap<string, number>>;

  /** Fences the incarnation: no event follows those that are captured. False while an object is left. */
  close(tenant: string): Promise<boolean>;

  /**
   * For how many milliseconds all of it has been in the log, by the database's clock; undefined while it is not.
   * @param purge gives up what is not.
   */
  drain(stream: bigint, purge: boolean): Promise<number | undefined>;

  /** Removes events of a closed and drained stream from the log, a bounded number; true when none is left. */
  removeEvents(stream: TenantStream): Promise<boolean>;

  /** Nothing is left of it. */
  markRemoved(stream: bigint): Promise<void>;
}

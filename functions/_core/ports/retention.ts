/** PORT. Housekeeping of the event log. */

export interface Retention {
  /** Makes room for what will be published in the next days. */
  prepare(): Promise<void>;

  /** Removes events older than this from the start of every stream, whole partitions at a time. Returns how many went. */
  expire(olderThanMs: number): Promise<number>;
}

/** PORT. Exclusive rights for a time. A lease alone is a hint; whoever writes under it compares its token in SQL. */

export interface Lease {
  readonly key: string;
  /** Rises with every acquisition of the key. */
  readonly fencingToken: bigint;
}

export interface Leases {
  /** The lease, or undefined while another holder has it. */
  acquire(key: string, durationMs: number): Promise<Lease | undefined>;
  /** False when the lease was lost: stop at once. */
  renew(lease: Lease, durationMs: number): Promise<boolean>;
  /** Gives it back; nothing happens when it was lost already. */
  release(lease: Lease): Promise<void>;
}

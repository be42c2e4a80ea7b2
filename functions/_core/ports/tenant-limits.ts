/** What tenants may use of one process. */

export interface Limits {
  readonly requestsPerSecond: number;
  /** Open watches. */
  readonly watchers: number;
}

/** Known in memory: it is asked for each request. */
export interface TenantLimits {
  /** What holds for who is no tenant: a caller over many. */
  readonly default: Limits;
  /** What the tenant's object says, as it was a few seconds ago at most, or else the default. */
  of(tenant: string): Limits;
}

/** What is used of a quota of objects. */
export interface ObjectUse {
  readonly group: string;
  readonly plural: string;
  readonly used: number;
}

export interface ObjectQuota {
  /** Of each kind; absent: any number. */
  readonly limit: number | undefined;
  /** Of the kinds that were ever there. */
  readonly uses: readonly ObjectUse[];
}

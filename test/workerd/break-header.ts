/** Of a request that names an object of the worker, which is then evicted: `shard` or `background`. See `breaking.ts`. */
export const BREAK = 'X-Test-Break';

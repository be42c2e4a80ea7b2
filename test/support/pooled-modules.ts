/** What is replaced in a run with a pooler, see `pooler-of-run.ts`: the names of modules, and the URLs of what they are then. */

export const REPLACED: ReadonlyMap<string, string> = new Map([
  ['#adapters/postgres/connection.ts', new URL('pooled-connection.ts', import.meta.url).href],
  ['#adapters/postgres/client.ts', new URL('pooled-client.ts', import.meta.url).href],
]);

/** The parts of kafkajs 2.2.4 that are used and that its own types leave out. Bound to this exact version: see kafkajs-fixes.ts. */

declare module 'kafkajs/package.json' {
  const manifest: { readonly version: string };
  export default manifest;
}

declare module 'kafkajs/src/network/requestQueue/index.js' {
  /** The requests of one connection that wait to be sent, or for their answer. */
  export interface RequestQueue {
    throttleCheckTimeoutId: NodeJS.Timeout | null;
    readonly throttledUntil: number;
    readonly pending: readonly unknown[];
    checkPendingRequests(): void;
    scheduleCheckPendingRequests(): void;
  }
  const RequestQueueClass: { readonly prototype: RequestQueue };
  export default RequestQueueClass;
}

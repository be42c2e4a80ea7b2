/** The parts of kafkajs 2.2.4 that are used and that its own types leave out. Bound to this version: see kafkajs-fixes.ts. */

declare module 'kafkajs/package.json' {
  const manifest: { readonly version: string };
  export default manifest;
}

declare module 'kafkajs/src/network/connection.js' {
  export interface Connection {
    /** Resolves at once when it is connected. */
    connect(): Promise<unknown>;
  }
  const ConnectionClass: { readonly prototype: Connection };
  export default ConnectionClass;
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

declare module 'kafkajs/src/protocol/encoder.js' {
  /** A buffer that grows. */
  export default class Encoder {
    /** All of it, with what is not written yet. */
    readonly buf: Buffer;
    readonly buffer: Buffer;
    writeInt32(value: number): this;
    writeBoolean(value: boolean): this;
  }
}

declare module 'kafkajs/src/protocol/error.js' {
  /** The error of a broker's error code: `type` is its name, such as `UNKNOWN_TOPIC_OR_PARTITION`. */
  export function createErrorFromCode(code: number): Error & { readonly type: string };
}

declare module 'kafkajs/src/protocol/requests/index.js' {
  import type Encoder from 'kafkajs/src/protocol/encoder.js';

  export interface Request {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    encode(): Promise<Pick<Encoder, 'buf' | 'buffer'>>;
  }

  export interface Exchange {
    readonly request: Request;
    /** When it is longer than the client's own. */
    readonly requestTimeout?: number;
    readonly response: {
      decode(bytes: Buffer): Promise<unknown>;
      /** Throws the first error of an answer, or passes it on. */
      parse(answer: unknown): Promise<unknown>;
    };
  }

  /** One kind of request, in the versions that kafkajs knows. */
  export interface Definition {
    readonly versions: readonly string[];
    protocol: (choice: { readonly version: number }) => (args: object) => Exchange;
  }

  export const requests: Readonly<Record<string, Definition>>;
  /** The newest version that both sides know. */
  export function lookup(
    versions: Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number }>>,
  ): (apiKey: number, definition: Definition) => (args: object) => Exchange;
}

declare module 'kafkajs/src/protocol/requests/apiKeys.js' {
  const apiKeys: Readonly<Record<string, number>>;
  export default apiKeys;
}

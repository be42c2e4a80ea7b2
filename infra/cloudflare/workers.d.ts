/** What is used of workerd's own modules. @see https://developers.cloudflare.com/workers/runtime-apis/ */

/** Of bytes. */
declare class IdentityTransformStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

declare module 'cloudflare:sockets' {
  export interface Socket {
    readonly readable: ReadableStream<Uint8Array>;
    readonly writable: WritableStream<Uint8Array>;
    /** Rejects when there is no connection. */
    readonly opened: Promise<unknown>;
    close(): Promise<void>;
  }

  export function connect(
    address: { readonly hostname: string; readonly port: number },
    options: { readonly secureTransport: 'on' | 'off'; readonly allowHalfOpen: boolean },
  ): Socket;
}

declare module 'cloudflare:workers' {
  /** The bindings, as text, objects or stubs. Not complete, nor of any type, before it was checked. */
  export const env: Readonly<Record<string, unknown>>;

  export class DurableObject<Env = unknown> {
    protected readonly ctx: DurableObjectState;
    protected readonly env: Env;
    constructor(ctx: DurableObjectState, env: Env);
  }

  export interface DurableObjectState {
    /** The name is there for objects that are found by it. */
    readonly id: { readonly name?: string };
    readonly storage: {
      getAlarm(): Promise<number | null>;
      setAlarm(epochMs: number): Promise<void>;
    };
  }

  export interface DurableObjectNamespace<T> {
    /** A stub of the one object of this name. Its methods are calls over the network. */
    getByName(name: string): T;
  }

  export interface ExecutionContext {
    /** Keeps the invocation alive for this, 30 s at most, once the answer was sent. */
    waitUntil(work: Promise<unknown>): void;
  }

  export interface ScheduledController {
    readonly scheduledTime: number;
    readonly cron: string;
  }
}

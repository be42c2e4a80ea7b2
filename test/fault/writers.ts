/** Load over HTTP: writers that create, change and delete objects, and remember what was answered. */

/** A write that was answered 2xx: it must become exactly one event. */
export interface AcknowledgedWrite {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly uid: string;
  /** As answered; a deletion's event has a later one. */
  readonly resourceVersion: bigint;
}

export interface WritersOptions {
  /** Of the server, or of servers in turn. Asked before each write: a server that is started again may be elsewhere. */
  readonly baseUrl: (writer: number) => string;
  readonly token: string;
  readonly tenant: string;
  /** @default 4 */
  readonly count?: number;
  /** @default small */
  readonly text?: string;
  /** Between two writes of one writer. @default 0 */
  readonly pauseMs?: number;
}

export interface Writers {
  /** In no order. */
  readonly acknowledged: readonly AcknowledgedWrite[];
  /** How many answers had each code. */
  readonly answers: ReadonlyMap<number, number>;
  /** Answers that are not 2xx, whole. */
  readonly refusals: readonly Refusal[];
  /** Requests whose connection broke. */
  readonly broken: number;
  /** The longest time to an answer, or to the end of the connection. */
  readonly slowestMs: number;
  /** Forgets times and refusals so far. */
  resetTimes(): void;
  /** Resolves after this many more writes were acknowledged. */
  more(writes: number, deadlineMs?: number): Promise<void>;
  /** Resolves when the writes in flight are answered. */
  stop(): Promise<void>;
}

export interface Refusal {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
  readonly tookMs: number;
}

interface WrittenObject {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
}

/** How long a client waits for an answer before it calls the server dead. */
const CLIENT_PATIENCE_MS = 30_000;
const RETRY_MS = 25;
const PATCHES = 3;

export function startWriters(options: WritersOptions): Writers {
  const { tenant, count = 4, text = 'x', pauseMs = 0 } = options;
  const acknowledged: AcknowledgedWrite[] = [];
  const answers = new Map<number, number>();
  let refusals: Refusal[] = [];
  let broken = 0;
  let slowestMs = 0;
  let isStopped = false;
  let wake = (): void => undefined;
  const run = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
  const done = Promise.all(Array.from({ length: count }, (_, index) => write(index)));

  return {
    acknowledged,
    answers,
    get refusals() {
      return refusals;
    },
    get broken() {
      return broken;
    },
    get slowestMs() {
      return slowestMs;
    },
    resetTimes() {
      refusals = [];
      slowestMs = 0;
    },
    more,
    async stop() {
      isStopped = true;
      await done;
    },
  };

  async function write(writer: number): Promise<void> {
    for (let number = 0; !isStopped; number++) {
      const collection = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
      const name = `${run}-${writer}-${number}`;
      let isThere = await send(writer, 'ADDED', 'POST', collection, { metadata: { name }, spec: { size: 0, text } });
      for (let size = 1; isThere && size <= PATCHES && !isStopped; size++) {
        isThere = await send(writer, 'MODIFIED', 'PATCH', `${collection}/${name}`, { spec: { size } });
      }
      if (isThere && number % 2 === 0 && !isStopped) await send(writer, 'DELETED', 'DELETE', `${collection}/${name}`);
    }
  }

  /** Whether it was acknowledged. */
  async function send(
    writer: number,
    type: AcknowledgedWrite['type'],
    method: string,
    path: string,
    body?: object,
  ): Promise<boolean> {
    const begin = performance.now();
    try {
      const response = await fetch(options.baseUrl(writer) + path, {
        method,
        headers: {
          Authorization: `Bearer ${options.token}`,
          'Content-Type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CLIENT_PATIENCE_MS),
      });
      const answer = await response.text();
      const tookMs = performance.now() - begin;
      slowestMs = Math.max(slowestMs, tookMs);
      answers.set(response.status, (answers.get(response.status) ?? 0) + 1);
      if (response.ok) {
        const { metadata } = JSON.parse(answer) as WrittenObject;
        acknowledged.push({ type, uid: metadata.uid, resourceVersion: BigInt(metadata.resourceVersion) });
        wake();
        if (pauseMs > 0) await delay(pauseMs);
        return true;
      }
      refusals.push({ status: response.status, retryAfter: response.headers.get('retry-after'), text: answer, tookMs });
    } catch {
      slowestMs = Math.max(slowestMs, performance.now() - begin);
      broken += 1;
    }
    await delay(RETRY_MS);
    return false;
  }

  async function more(writes: number, deadlineMs = 30_000): Promise<void> {
    const target = acknowledged.length + writes;
    const deadline = performance.now() + deadlineMs;
    while (acknowledged.length < target) {
      const remainingMs = deadline - performance.now();
      if (remainingMs <= 0) {
        const told = JSON.stringify([...answers]);
        throw new Error(
          `of ${writes} writes ${target - acknowledged.length} were not acknowledged within ${deadlineMs} ms; answers ${told}, broken ${broken}, last refusal ${JSON.stringify(refusals.at(-1))}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, remainingMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

async function delay(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

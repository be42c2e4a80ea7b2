/** Writes by raw SQL, one after the other for each tenant: the events of a stream are in the order of their objects. */

import type { Sql } from '#adapters/postgres/client.ts';

export interface SteadyWriter {
  /** How many objects were made, named w0, w1 and so on. */
  readonly count: number;
  /** The longest that a write took, in ms. */
  readonly slowestMs: number;
  /** Resolves when the last one is committed. */
  pause(): Promise<void>;
  resume(): void;
}

export interface SteadyWriterOptions {
  readonly sql: Sql;
  readonly tenant: string;
  /** Between two writes. */
  readonly pauseMs: number;
}

export function startSteadyWriter({ sql, tenant, pauseMs }: SteadyWriterOptions): SteadyWriter {
  let count = 0;
  let slowestMs = 0;
  let isPaused = false;
  let running = run();
  return {
    get count() {
      return count;
    },
    get slowestMs() {
      return slowestMs;
    },
    async pause() {
      isPaused = true;
      await running;
    },
    resume() {
      isPaused = false;
      running = run();
    },
  };

  async function run(): Promise<void> {
    while (!isPaused) {
      const startMs = performance.now();
      await sql`insert into plumbline.resource (tenant, api_group, kind, name)
        values (${tenant}, 'example.dev', 'Widget', ${`w${count}`})`;
      count += 1;
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** Where a scenario takes place: servers on one database, and publishers beside them. */

import { postgresRetention } from '#adapters/postgres/retention.ts';
import type { Sql } from '#adapters/postgres/client.ts';
import type { Target } from '#test/http/target.ts';
import type { Child } from '#test/support/child.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { startPgBouncer } from '#test/support/pgbouncer.ts';
import { createServerLogin, runProgram, serverEnvironment, startServer } from '#test/support/server-process.ts';
import { startTokenIssuer } from '#test/support/token-issuer.ts';
import { EDGE } from '#test/workerd/edge.ts';

export interface Deployment {
  readonly servers: readonly Target[];
  /** All of them take the same tokens, and so each other's cursors: watchers go from one to another. */
  readonly isOne: boolean;
  /** Processes that may be frozen for a moment. */
  readonly freezable: readonly Child[];
  readonly publishers: Publishers;
  /** Events that workerd was seen to publish. */
  readonly publishedAtEdge: number;
  stop(): Promise<void>;
}

/** Processes of their own; see publisher-process.ts. */
export interface Publishers {
  readonly modes: readonly ('resident' | 'cron')[];
  readonly databaseUrl: string;
  /** Where sessions go, if that is the URL of a pooler. */
  readonly directUrl?: string;
}

/** @param sql of a superuser, as is the URL. */
export type Deploy = (databaseUrl: string, sql: Sql) => Promise<Deployment>;

/** Two of `npm start`, each with all functions and a key of its own. @param env beside what every test's instance gets. */
export function twoInstances(env: Readonly<Record<string, string>> = {}): Deploy {
  return async (databaseUrl) => {
    // One after the other, as the first makes what both need.
    const servers = [await startLocalInstance({ databaseUrl, env }), await startLocalInstance({ databaseUrl, env })];
    return {
      servers,
      isOne: false,
      freezable: servers.map((server) => server.process),
      publishers: { modes: ['resident', 'cron', 'resident'], databaseUrl },
      publishedAtEdge: 0,
      async stop() {
        await Promise.all(servers.map((server) => server.stop()));
      },
    };
  };
}

export interface MixedOptions {
  /** Takes the place of one of the two servers: workerd, which publishes when it is kicked and by cron. @default false */
  readonly withEdge?: boolean;
  /** Nothing but the pooler can be reached: whoever would be told looks by itself. @default false */
  readonly isPoolerAlone?: boolean;
}

/**
 * Two servers that do not publish, a resident publisher and two scheduled ones, all of them behind PgBouncer in transaction
 * mode, but for workerd, which has a pooler of its own.
 */
export function mixed({ withEdge = false, isPoolerAlone = false }: MixedOptions = {}): Deploy {
  return async (databaseUrl, sql) => {
    const stops: (() => Promise<unknown>)[] = [];
    let publishedAtEdge = 0;
    const stop = async (): Promise<void> => {
      for (const each of stops.toReversed()) await each();
    };
    try {
      return await open();
    } catch (error) {
      await stop();
      throw error;
    }

    async function open(): Promise<Deployment> {
      const issuer = await startTokenIssuer();
      stops.push(() => issuer.stop());
      const env = {
        ...serverEnvironment(databaseUrl, issuer),
        KINDS: './test/http/kinds.ts',
        TENANT_REQUESTS_PER_SECOND: '100000',
      };
      const { code, errors } = await runProgram('set-up', [], env);
      if (code !== 0) throw new Error(`the set-up ended with code ${code}: ${errors}`);
      await postgresRetention(sql).prepare();
      const pooler = await startPgBouncer(databaseUrl);
      stops.push(() => pooler.stop());
      const directUrl = isPoolerAlone ? 'none' : await createServerLogin(databaseUrl);
      const pooled = { ...env, DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: directUrl };
      const token = (grant: Parameters<Target['token']>[0]): Promise<string> => issuer.issue(grant);

      const roles = withEdge ? ['api,watch'] : ['api,watch,reconcile', 'api,watch,reconcile'];
      const nodes = await Promise.all(roles.map((role) => startServer(role, pooled)));
      stops.push(() => Promise.all(nodes.map((node) => node.stop())));
      const servers: Target[] = nodes.map(({ publicUrl }) => ({ baseUrl: publicUrl, audience: 'public', token }));
      if (withEdge) servers.push(await openEdge(env, token));
      return {
        servers,
        isOne: true,
        freezable: nodes.map((node) => node.process),
        publishers: { modes: ['resident', 'cron', 'cron'], databaseUrl: pooler.url, directUrl },
        get publishedAtEdge() {
          return publishedAtEdge;
        },
        stop,
      };
    }

    async function openEdge(env: Readonly<Record<string, string>>, token: Target['token']): Promise<Target> {
      const edge = await startLocalInstance({ program: EDGE, databaseUrl, env, token });
      stops.push(() => edge.stop());
      const ending = new AbortController();
      const cron = runCron(
        edge,
        ending.signal,
        (published) => (publishedAtEdge = Math.max(publishedAtEdge, published)),
      );
      stops.push(async () => {
        ending.abort();
        await cron;
      });
      return edge;
    }
  };
}

const CRON_EVERY_MS = 2_000;

/** More often than any platform does. Connections of the edge are cut by tests too; what fails comes again. */
async function runCron(
  { opsUrl }: LocalInstance,
  signal: AbortSignal,
  onPublished: (events: number) => void,
): Promise<void> {
  while (!signal.aborted) {
    const metrics = await Promise.all([textOf(`${opsUrl}/metrics`), textOf(`${opsUrl}/cdn-cgi/local/scheduled`)]);
    onPublished(Number(/^plumbline_published_events_total (\d+)$/m.exec(metrics[0])?.[1] ?? 0));
    await new Promise((resolve) => setTimeout(resolve, CRON_EVERY_MS));
  }

  async function textOf(url: string): Promise<string> {
    return fetch(url, { signal }).then(
      (answer) => answer.text(),
      () => '',
    );
  }
}

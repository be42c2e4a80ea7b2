/** An instance as a user starts it, in a process of its own, with tenant and kind for the benches. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import packageJson from '#package.json' with { type: 'json' };
import { type Child, startChild } from '#test/support/child.ts';

export interface Instance {
  /** Where its events lie. */
  readonly log: 'postgres' | 'kafka';
  readonly url: string;
  readonly databaseUrl: string;
  /** Of an admin of all tenants. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of all tenants, each of another subject. */
  readonly tokens: { readonly admin: string; readonly editor: string; readonly viewer: string };
  readonly pid: number;
  /** As the superuser of its database. */
  readonly sql: postgres.Sql;
  /** Stops it as `SIGTERM` does, and starts it again at the same address; resolves when it is ready. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export const TENANT = 'bench';

/** Documents of about 1 KB. */
export const PAD: string = 'x'.repeat(900);

export interface InstanceOptions {
  /** For the log in Kafka. */
  readonly kafkaBrokers?: readonly string[] | undefined;
  /** Of an instance that runs: this one is its second server. @default a database of its own */
  readonly databaseUrl?: string;
  /** Of package.json, which starts it. @default start */
  readonly script?: 'start' | 'edge';
  readonly env?: Readonly<Record<string, string>>;
}

/** Load is not what limits are set for. */
const WITHOUT_LIMITS = {
  TENANT_OBJECTS: '999999999',
  TENANT_REQUESTS_PER_SECOND: '999999999',
  TENANT_WATCHERS: '999999999',
  MAX_WATCHERS: '999999999',
};

export async function startInstance({
  kafkaBrokers,
  databaseUrl,
  script = 'start',
  env: more,
}: InstanceOptions = {}): Promise<Instance> {
  const dataDir = await mkdtemp(join(tmpdir(), 'plumbline-bench-'));
  const env = {
    DATA_DIR: dataDir,
    KINDS: './test/http/kinds.ts',
    LOG_FORMAT: 'json',
    ...WITHOUT_LIMITS,
    ...more,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...(kafkaBrokers && { EVENT_LOG: 'kafka', KAFKA_BROKERS: kafkaBrokers.join(',') }),
  };
  let running = await launch(script, env, '0');
  const { publicUrl } = running;
  const read = (role: string): Promise<string> => readToken(dataDir, role);
  const [admin, editor, viewer] = await Promise.all([read('admin'), read('editor'), read('viewer')]);
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
  await haveTenant(publicUrl, headers);
  return {
    log: kafkaBrokers ? 'kafka' : 'postgres',
    url: publicUrl,
    get databaseUrl() {
      return running.databaseUrl;
    },
    headers,
    tokens: { admin, editor, viewer },
    get pid() {
      return running.child.pid;
    },
    get sql() {
      return running.sql;
    },
    async restart(): Promise<void> {
      await end(running);
      running = await launch(script, env, new URL(publicUrl).port);
    },
    async stop(): Promise<void> {
      await end(running);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function readToken(dataDir: string, role: string): Promise<string> {
  return (await readFile(join(dataDir, 'tokens', role), 'utf8')).trim();
}

interface Running {
  readonly child: Child;
  readonly publicUrl: string;
  readonly databaseUrl: string;
  readonly sql: postgres.Sql;
}

/** As `npm start` does; resolves when it is ready. */
async function launch(
  script: 'start' | 'edge',
  env: Readonly<Record<string, string>> & { DATA_DIR: string },
  port: string,
): Promise<Running> {
  const [program = '', ...args] = packageJson.scripts[script].replace(/^exec node /, '').split(' ');
  const child = startChild(program, args, { env: { ...env, PORT: port, CONTROLLER_PORT: '0', OPS_PORT: '0' } });
  for (let line = await child.nextLine(); !line?.includes('"msg":"ready"'); line = await child.nextLine()) {
    if (line === undefined) throw new Error(`the instance did not start: ${(await child.exit).errors}`);
  }
  const run = JSON.parse(await readFile(join(env.DATA_DIR, 'run.json'), 'utf8')) as {
    publicUrl: string;
    databaseUrl: string;
  };
  return { child, ...run, sql: postgres(run.databaseUrl, { max: 8, onnotice: () => undefined }) };
}

async function end({ child, sql }: Running): Promise<void> {
  await sql.end();
  child.kill('SIGTERM');
  await child.exit;
}

async function haveTenant(publicUrl: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const url = `${publicUrl}/apis/plumbline.dev/v1/tenants`;
  const tenant = { apiVersion: 'plumbline.dev/v1', kind: 'Tenant', metadata: { name: TENANT }, spec: {} };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(tenant) });
  // Another server of the same database has made it.
  const isThere = answer.ok || answer.status === 409;
  if (!isThere) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
}

/** Makes `count` widgets `w1` … by SQL. */
export async function createWidgets(sql: postgres.Sql, count: number): Promise<void> {
  await sql`
    insert into plumbline.resource (tenant, api_group, kind, name, spec)
    select ${TENANT}, 'example.dev', 'Widget', 'w' || i, jsonb_build_object('size', 0, 'pad', ${PAD}::text)
    from generate_series(1, ${count}::int) i`;
}

/** Resolves when the log has everything. */
export async function published(sql: postgres.Sql): Promise<void> {
  for (;;) {
    const [row] = await sql<{ pending: boolean }[]>`select exists (select from plumbline.outbox) as pending`;
    if (!row?.pending) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Seconds of CPU that a process, without its children, has used. Linux only; NaN elsewhere. */
export async function cpuSeconds(pid: number): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return Number.NaN;
  }
}

/** Resident bytes of a process. Linux only; NaN elsewhere. */
export async function residentBytes(pid: number): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
  } catch {
    return Number.NaN;
  }
}

/** Where a watch of the bench's tenant begins that has everything up to now. */
export async function headCursor({ url, headers }: Instance): Promise<string> {
  const path = `/apis/example.dev/v1/namespaces/${TENANT}/widgets?limit=1`;
  const list = (await (await fetch(url + path, { headers })).json()) as { metadata: { cursor: string } };
  return list.metadata.cursor;
}

/** Capture: what the triggers cost 32 clients that do nothing but update, beside the same table with its triggers off. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import { migrate } from '#adapters/postgres/migrate.ts';
import { tenantKind } from '#core/kinds/tenant.ts';
import kinds from '#test/http/kinds.ts';
import { createWidgets, type Instance, PAD, published, TENANT } from '#test/bench/instance.ts';
import { type Finding, median, rate } from '#test/bench/report.ts';

const CLIENTS = 32;
const OBJECTS = 10_000;
const SECONDS = 6;
const ROUNDS = 3;

const run = promisify(execFile);

/** First in a database without a publisher, then in the instance's, whose publisher is awake all the time. */
export async function benchCapture(instance: Instance): Promise<readonly Finding[]> {
  const pgbench = await findPgbench();
  if (pgbench === undefined) {
    return [
      { what: 'capture, 32 clients', figure: 'not measured: pgbench is not installed', goal: '≥ 0.60', met: undefined },
    ];
  }
  const folder = await mkdtemp(join(tmpdir(), 'plumbline-pgbench-'));
  const script = join(folder, 'update.sql');
  await writeFile(script, SCRIPT);
  const alone = await unpublishedDatabase(instance);
  await createWidgets(instance.sql, OBJECTS);
  await published(instance.sql);
  const measured: Record<'off' | 'on' | 'drained', number[]> = { off: [], on: [], drained: [] };
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      await alone.sql`alter table plumbline.resource disable trigger user`;
      measured.off.push(await load(alone.url, pgbench, script));
      await alone.sql`alter table plumbline.resource enable trigger user`;
      measured.on.push(await load(alone.url, pgbench, script));
      await alone.sql`truncate plumbline.outbox`;
      measured.drained.push(await load(instance.databaseUrl, pgbench, script));
      await published(instance.sql);
    }
  } finally {
    await alone.sql.end();
    await rm(folder, { recursive: true });
  }
  const [off, on, drained] = [median(measured.off), median(measured.on), median(measured.drained)];
  return [
    finding('capture, 32 clients', on, off, 0.6),
    finding('the same, with the publisher awake', drained, off, 0.5),
  ];
}

/** On the same server, so that only the triggers differ. */
async function unpublishedDatabase(instance: Instance): Promise<{ readonly url: string; readonly sql: postgres.Sql }> {
  await instance.sql`create database capture`;
  const url = new URL(instance.databaseUrl);
  url.pathname = '/capture';
  await migrate(url.href);
  await registerKinds(url.href, [tenantKind, ...kinds]);
  const sql = postgres(url.href, { max: 1, onnotice: () => undefined });
  await sql`insert into plumbline.resource (tenant, api_group, kind, name)
    values ('system', 'plumbline.dev', 'Tenant', ${TENANT})`;
  await createWidgets(sql, OBJECTS);
  await sql`truncate plumbline.outbox`;
  return { url: url.href, sql };
}

function finding(what: string, on: number, off: number, goal: number): Finding {
  const ratio = on / off;
  return {
    what,
    figure: `${rate(on)} (without triggers ${rate(off)})`,
    ratio: ratio.toFixed(2),
    goal: `≥ ${goal.toFixed(2)}`,
    met: ratio >= goal,
  };
}

const SCRIPT = `\\set i random(1, ${OBJECTS})
\\set n random(1, 1000000000)
update plumbline.resource set spec = ('{"size":1,"pad":"${PAD}","n":' || (:n)::int || '}')::jsonb
  where api_group = 'example.dev' and kind = 'Widget' and tenant = '${TENANT}' and name = 'w' || (:i)::int;
`;

async function load(databaseUrl: string, pgbench: string, script: string): Promise<number> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const args = ['-h', hostname, '-p', port, '-U', username, '-n', '-M', 'prepared', '-c', String(CLIENTS), '-j', '2'];
  const { stdout } = await run(pgbench, [...args, '-T', String(SECONDS), '-f', script, pathname.slice(1)], {
    env: { ...process.env, PGPASSWORD: password },
  });
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
}

async function findPgbench(): Promise<string | undefined> {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? await readdir(debian) : [];
  const candidates = [
    ...versions.map((version) => join(debian, version, 'bin', 'pgbench')),
    ...(process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'pgbench')),
  ];
  return candidates.find((path) => existsSync(path));
}

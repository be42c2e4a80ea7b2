import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '#adapters/postgres/client.ts';
import { startResumingWatcher } from '#test/fault/resuming-watcher.ts';
import { makeTenant } from '#test/fault/tenant.ts';
import { startChild } from '#test/support/child.ts';
import { makeOwnFolder } from '#test/support/leftovers.ts';
import { describeKafka, kafkaVariables } from '#test/support/kafka.ts';
import { type LocalInstance, startLocalInstance } from '#test/support/local-instance.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/postgres-server.ts';

describeKafka('an installation that changes its log', () => {
  let database: TestDatabase;
  let sql: Sql;
  let kafka: Readonly<Record<string, string>>;
  let dataDir: string;
  let instance: LocalInstance | undefined;

  beforeAll(async () => {
    database = await createTestDatabase();
    sql = connect(database.url, { applicationName: 'test', maxConnections: 2 });
    kafka = await kafkaVariables();
    dataDir = await makeOwnFolder('plumbline-log-switch-');
  });

  afterAll(async () => {
    await instance?.stop();
    await sql?.end({ timeout: 1 });
    await database?.drop();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('loses nothing: watchers at the head go on, others are told 410, and what waits goes to the new log', async () => {
    let server = await start({});
    const { tenant, token } = await makeTenant(server);
    const baseUrl = (): string => server.baseUrl;
    const behind = startResumingWatcher({ baseUrl, token, tenants: tenant });
    await behind.ready;
    await behind.stop();
    const watcher = startResumingWatcher({ baseUrl, token, tenants: tenant });
    await watcher.ready;
    await write(tenant, 'in-postgres');
    await watcher.until(({ seq }) => seq === 1n);

    const toKafka = await runScript(['--to', 'kafka'], kafka);
    expect(toKafka).toMatchObject({ code: 0, errors: '' });
    expect(toKafka.output).toMatch(/^3 streams moved to the log kafka; start the servers with EVENT_LOG=kafka\./);
    // The server has no log any more: it says so, and ends.
    expect((await server.process.exit).code).toBe(1);
    expect(server.log()).toContain('the events of this installation lie in the log \\"kafka\\" now');
    expect(await refusalOf({})).toContain(
      'EVENT_LOG is "postgres", but the events of this installation lie in the log',
    );

    await write(tenant, 'between');
    server = await start(kafka);
    await watcher.until(({ seq }) => seq === 2n);
    await write(tenant, 'in-kafka');
    await watcher.until(({ seq }) => seq === 3n);
    expect(watcher.failures).toEqual([]);
    const answer = await fetch(`${server.baseUrl}/watch/v1/events?tenants=${tenant}&from=${behind.lastEventId}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(answer.status).toBe(410);

    expect(await runScript(['--to', 'kafka'], kafka)).toMatchObject({ code: 0, output: 'the log is kafka already' });
    await server.stop();
    await write(tenant, 'waiting');
    expect(await runScript(['--to', 'postgres'], {})).toMatchObject({ code: 0 });
    server = await start({});
    await watcher.until(({ seq }) => seq === 4n);
    expect(watcher.failures).toEqual([]);
    expect(watcher.events.map(({ seq }) => seq)).toEqual([1n, 2n, 3n, 4n]);
    await watcher.stop();
    await server.stop();
  });

  test('is switched while nothing runs, its embedded database being started for it', async () => {
    const folder = await makeOwnFolder('plumbline-log-switch-');
    const env = { DATABASE_URL: '', DATA_DIR: folder };
    expect(await runScript(['--to', 'kafka'], { ...kafka, ...env })).toMatchObject({
      code: 1,
      errors: `${folder} has no database; set DATA_DIR to the folder that has, or DATABASE_URL\n`,
    });
    const server = await startLocalInstance({ databaseUrl: '', dataDir: folder });
    await makeTenant(server);
    await server.stop();
    const moved = await runScript(['--to', 'kafka'], { ...kafka, ...env });
    expect(moved).toMatchObject({ code: 0, errors: '' });
    expect(moved.output).toMatch(/^3 streams moved/);
    await rm(folder, { recursive: true, force: true });
  });

  test('says how it is used', async () => {
    for (const args of [[], ['--to', 'nowhere'], ['--from', 'kafka']]) {
      const { code, errors } = await runScript(args, kafka);
      expect([code, errors]).toEqual([1, 'usage: npm run migrate-log -- --to kafka|postgres\n']);
    }
    const { errors } = await runScript(['--to', 'kafka'], {});
    expect(errors).toMatch(/^KAFKA_BROKERS is not set/);
  });

  test('does not start without its brokers, and names them', async () => {
    expect(await refusalOf({ ...kafka, KAFKA_BROKERS: '127.0.0.1:1' })).toMatch(
      /^the event log in Kafka cannot be used: no Kafka broker can be reached: 127\.0\.0\.1:1/,
    );
  });

  async function start(env: Readonly<Record<string, string>>): Promise<LocalInstance> {
    instance = await startLocalInstance({ databaseUrl: database.url, dataDir, env });
    return instance;
  }

  async function write(tenant: string, name: string): Promise<void> {
    await sql`insert into plumbline.resource (tenant, api_group, kind, name) values (${tenant}, 'example.dev', 'Widget', ${name})`;
  }

  async function refusalOf(env: Readonly<Record<string, string>>): Promise<string> {
    const child = startChild('infra/local/main.ts', [], {
      env: { DATABASE_URL: database.url, DATA_DIR: dataDir, PORT: '0', CONTROLLER_PORT: '0', OPS_PORT: '0', ...env },
    });
    const { code, errors } = await child.exit;
    expect(code).toBe(1);
    return errors;
  }

  async function runScript(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<{ readonly code: number | null; readonly output: string; readonly errors: string }> {
    const child = startChild('infra/local/migrate-log.ts', args, {
      env: { DATABASE_URL: database.url, DATA_DIR: dataDir, ...env },
    });
    const lines: string[] = [];
    for (let line = await child.nextLine(); line !== undefined; line = await child.nextLine()) lines.push(line);
    const { code, errors } = await child.exit;
    return { code, output: lines.join('\n'), errors };
  }
});

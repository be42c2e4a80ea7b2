/**
 * `npm run edge`: the worker on this machine, in workerd through `wrangler dev`, beside an embedded PostgreSQL or the one
 * that DATABASE_URL names. It takes the variables of `npm start`, and leaves the same run.json and tokens behind.
 */

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { chooseLog, LogMismatch } from '#adapters/postgres/log-choice.ts';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { startCron } from '#infra/cloudflare/dev/cron.ts';
import { startForwarder } from '#infra/cloudflare/dev/forwarder.ts';
import { serveKeySet } from '#infra/cloudflare/dev/key-set.ts';
import { startWrangler } from '#infra/cloudflare/dev/wrangler.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import { runCommand } from '#infra/local/command.ts';
import { type Config, readConfig } from '#infra/local/config.ts';
import { openDataDirectory } from '#infra/local/data-directory.ts';
import { openDatabase } from '#infra/local/database.ts';
import {
  type DevelopmentIdentity,
  loadDevelopmentIdentity,
  removeDevelopmentIdentity,
} from '#infra/local/development-identity.ts';
import { greet } from '#infra/local/greeting.ts';
import { lockInstance } from '#infra/local/instance-lock.ts';
import { ownInstallation } from '#infra/local/installation.ts';
import { issuerVariables } from '#infra/local/issuer-variables.ts';
import { loadKinds } from '#infra/local/kinds.ts';
import { removeRunFile, writeRunFile } from '#infra/local/run-file.ts';
import { shippedKinds } from '#infra/local/shipped-kinds.ts';
import { StartError } from '#infra/local/start-error.ts';
import { type Started, stopAll } from '#infra/local/started.ts';
import { waitForStopSignal } from '#infra/local/stop-signals.ts';
import { writeTokenFiles } from '#infra/local/token-files.ts';

await runCommand(async function edge() {
  const config = readConfig(process.env, { isTerminal: process.stdout.isTTY });
  const log = createLogger({ format: config.logFormat, level: config.logLevel });
  const stopSignal = waitForStopSignal();
  const started: Started = [];
  try {
    const { ended } = await startAll(config, log, started);
    log.info({ signal: await Promise.race([stopSignal, ended]) }, 'stopping');
  } finally {
    await stopAll(started, log);
  }
});
process.exit();

/** @returns a promise that rejects when workerd ends by itself. */
async function startAll(config: Config, logger: Logger, started: Started): Promise<{ readonly ended: Promise<never> }> {
  const { dataDir, host } = config;
  await openDataDirectory(dataDir);
  const lock = await lockInstance(dataDir);
  started.push({ name: 'lock', stop: () => lock.release() });
  await removeRunFile(dataDir);
  const keys = config.issuer ? undefined : await loadDevelopmentIdentity(dataDir);
  if (!keys) await removeDevelopmentIdentity(dataDir);
  const database = await openDatabase(config, logger);
  started.push({ name: 'database', stop: () => database.stop() });
  const pooledUrl = await prepareDatabase(config, database.url);
  const issuer = keys ? await serveDevelopmentKeys(keys, started) : givenIssuer();

  const publicPort = config.publicPort === 0 ? await freePort() : config.publicPort;
  // Host names tell whom a request is for; on one machine they are told apart by their ports.
  const controllers = await startForwarder({ host, port: config.controllerPort, to: publicPort });
  started.push({ name: 'controller listener', stop: () => controllers.stop() });
  const operators = await startForwarder({ host, port: config.opsPort, to: publicPort });
  started.push({ name: 'operations listener', stop: () => operators.stop() });
  const wrangler = await startWrangler({
    config,
    databaseUrl: database.url,
    pooledUrl,
    host,
    port: publicPort,
    logger,
    variables: {
      ...issuer,
      CONTROLLER_HOST: controllers.address,
      OPS_HOST: operators.address,
    },
  });
  started.push({ name: 'workerd', stop: () => wrangler.stop() });
  const cron = startCron(wrangler.url, logger);
  started.push({ name: 'cron', stop: () => cron.stop() });

  if (keys) await writeTokenFiles(dataDir, keys);
  const info = {
    pid: process.pid,
    publicUrl: wrangler.url,
    controllerUrl: `http://${controllers.address}`,
    opsUrl: `http://${operators.address}`,
    databaseUrl: database.url,
  };
  await writeRunFile(dataDir, info);
  started.push({ name: 'run.json', stop: () => removeRunFile(dataDir) });
  greet(config, info, logger);
  return { ended: wrangler.ended };
}

/** What a deployment does before its workers, which have no rights to. @returns the URL of the workers' login. */
async function prepareDatabase(config: Config, databaseUrl: string): Promise<string> {
  try {
    await chooseLog(databaseUrl, { log: 'postgres' });
  } catch (error) {
    throw error instanceof LogMismatch ? new StartError(error.message, { cause: error }) : error;
  }
  const installation = ownInstallation(databaseUrl);
  await installation.haveObjectLimit(config.limits.tenantObjects);
  return withSession(databaseUrl, { applicationName: 'plumbline edge start' }, async (sql) => {
    const shipped = shippedKinds({ config, databaseUrl, sql, topicAdmin: undefined });
    await installation.haveKinds(await loadKinds(shipped, config.kindsModule));
    const url = new URL(databaseUrl);
    const login = { name: `${url.pathname.slice(1)}_edge`, password: randomBytes(18).toString('hex') };
    await makePooledLogin(sql, login);
    url.username = login.name;
    url.password = login.password;
    return url.href;
  });
}

function givenIssuer(): Readonly<Record<string, string>> {
  const given = Object.keys(issuerVariables()).map((name) => [name, process.env[name] ?? ''] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== ''));
}

/** The variables of an issuer whose keys are those of DATA_DIR. */
async function serveDevelopmentKeys(
  { issuer, jwks }: DevelopmentIdentity,
  started: Started,
): Promise<Readonly<Record<string, string>>> {
  const server = await serveKeySet(jwks);
  started.push({ name: 'keys of tokens', stop: () => server.stop() });
  return { TOKEN_ISSUER: issuer, TOKEN_JWKS_URL: server.url };
}

async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

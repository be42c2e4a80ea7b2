/**
 * `npm run edge`: the worker on this machine, in workerd through `wrangler dev`, beside an embedded PostgreSQL or the one
 * that DATABASE_URL names. It takes the variables of `npm start`, and leaves the same run.json and tokens behind.
 */

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { startCron } from '#infra/cloudflare/dev/cron.ts';
import { startForwarder } from '#infra/cloudflare/dev/forwarder.ts';
import { serveKeySet } from '#infra/cloudflare/dev/key-set.ts';
import { startWrangler } from '#infra/cloudflare/dev/wrangler.ts';
import { freePorts } from '#infra/kafka/ports.ts';
import { runCommand } from '#infra/local/command.ts';
import { type Config, readConfig } from '#infra/local/config.ts';
import type { DevelopmentIdentity } from '#infra/local/development-identity.ts';
import { ownInstallation } from '#infra/local/installation.ts';
import { issuerVariables } from '#infra/local/issuer-variables.ts';
import { openKinds } from '#infra/local/open-kinds.ts';
import { openOwnInstance } from '#infra/local/own-instance.ts';
import { type Started, stopAll } from '#infra/local/started.ts';
import { waitForStopSignal } from '#infra/local/stop-signals.ts';

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
  const { host } = config;
  const { databaseUrl, keys, announce } = await openOwnInstance(config, logger, started);
  const pooledUrl = await prepareDatabase(config, databaseUrl, logger);
  const issuer = keys ? await serveDevelopmentKeys(keys, started) : givenIssuer();

  const publicPort = config.publicPort === 0 ? await freePort() : config.publicPort;
  // Host names tell whom a request is for; on one machine they are told apart by their ports.
  const controllers = await startForwarder({ host, port: config.controllerPort, to: publicPort });
  started.push({ name: 'controller listener', stop: () => controllers.stop() });
  const operators = await startForwarder({ host, port: config.opsPort, to: publicPort });
  started.push({ name: 'operations listener', stop: () => operators.stop() });
  const wrangler = await startWrangler({
    config,
    databaseUrl,
    pooledUrl,
    host,
    port: publicPort,
    logger,
    variables: {
      ...issuer,
      CONTROLLER_HOST: controllers.address,
      OPS_HOST: operators.address,
      ...givenOwn(),
    },
  });
  started.push({ name: 'workerd', stop: () => wrangler.stop() });
  const cron = startCron(wrangler.url, logger);
  started.push({ name: 'cron', stop: () => cron.stop() });

  await announce({
    publicUrl: wrangler.url,
    controllerUrl: `http://${controllers.address}`,
    opsUrl: `http://${operators.address}`,
  });
  return { ended: wrangler.ended };
}

/** What a deployment does before its workers, which have no rights to. @returns the URL of the workers' login. */
async function prepareDatabase(config: Config, databaseUrl: string, logger: Logger): Promise<string> {
  const installation = ownInstallation(databaseUrl);
  await installation.haveLog(config, logger);
  await installation.haveObjectLimit(config.limits.tenantObjects);
  return withSession(databaseUrl, { applicationName: 'plumbline edge start' }, async (sql) => {
    await openKinds({ config, databaseUrl, sql, topicAdmin: undefined }, installation);
    const url = new URL(config.poolerUrl ?? databaseUrl);
    const login = { name: `${new URL(databaseUrl).pathname.slice(1)}_edge`, password: randomBytes(18).toString('hex') };
    await makePooledLogin(sql, login);
    url.username = login.name;
    url.password = login.password;
    return url.href;
  });
}

/** Read by the worker alone. */
function givenOwn(): Readonly<Record<string, string>> {
  return givenOf(['WATCH_SHARDS', 'TENANT_REQUESTS_AT_ONCE']);
}

function givenIssuer(): Readonly<Record<string, string>> {
  return givenOf(Object.keys(issuerVariables()));
}

function givenOf(names: readonly string[]): Readonly<Record<string, string>> {
  const given = names.map((name) => [name, process.env[name] ?? ''] as const);
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

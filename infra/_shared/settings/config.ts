/**
 * Environment variables to configuration, by one schema. All that is wrong is told at once: the variable, its value
 * (without passwords) and what is allowed.
 */

import { resolve } from 'node:path';
import * as v from 'valibot';
import { CURSOR_KEYS_FORM, parseCursorKeys } from '#adapters/node/cursor-key-text.ts';
import {
  type DatabaseServerUrls,
  databaseServersVariable,
  maskDatabaseServers,
} from '#infra/_shared/database/database-servers.ts';
import {
  databaseAddresses,
  type DatabaseAddresses,
  databaseVariables,
  maskDatabaseUrl,
} from '#infra/_shared/settings/database-variables.ts';
import {
  type IssuerConfig,
  issuerConfig,
  ISSUER_VARIABLES,
  issuerVariables,
} from '#infra/_shared/settings/issuer-variables.ts';
import {
  CLIENT_CERTIFICATE_RULE,
  isCertificateWhole,
  type KafkaConfig,
  kafkaConfig,
  kafkaVariables,
  SASL_VARIABLES,
} from '#infra/_shared/settings/kafka-variables.ts';
import { type LimitsConfig, limitsConfig, limitVariables } from '#infra/_shared/serving/limits.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';
import { integer, oneOf, origins, path } from '#infra/_shared/settings/variables.ts';

const LOG_FORMATS = ['pretty', 'json'] as const;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const EVENT_LOGS = ['postgres', 'kafka'] as const;
const PORTS = ['PORT', 'CONTROLLER_PORT', 'OPS_PORT'] as const;
const MAX_RETENTION_HOURS = 87_600;

export interface Config extends DatabaseAddresses {
  readonly host: string;
  /** 0 picks a free port; so do the other two. */
  readonly publicPort: number;
  readonly controllerPort: number;
  readonly opsPort: number;
  /** Origins whose pages may call the public listener; `*` is every one. */
  readonly allowedOrigins: readonly string[];
  /** Servers for managed databases, by name; an embedded server comes besides, as `local`. */
  readonly databaseServers: DatabaseServerUrls;
  /** Absolute. */
  readonly dataDir: string;
  /** Who issues tokens. Absent: the development key of DATA_DIR. */
  readonly issuer: IssuerConfig | undefined;
  /** Absent: the event log is PostgreSQL's. */
  readonly kafka: KafkaConfig | undefined;
  /** A module's path, relative to the working directory, or a package's name. */
  readonly kindsModule: string | undefined;
  readonly logFormat: (typeof LOG_FORMATS)[number];
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly eventRetentionHours: number;
  /** How long watch groups are kept that nobody is a member of. */
  readonly watchGroupIdleDays: number;
  /** How many passes run at once in this process. */
  readonly reconcileConcurrency: number;
  /** How long watchers that were away have to come back and read the end of a deleted tenant. */
  readonly tenantGraceSeconds: number;
  /** Between `/readyz` failing and the stop, for whoever balances load. */
  readonly stopDelaySeconds: number;
  readonly limits: LimitsConfig;
  /** Absent: external objects whose object is gone are left where they are. */
  readonly orphanGraceHours: number | undefined;
  /** Absent: the keys that seal cursors lie in the database. */
  readonly cursorKeys: CursorKeyConfig | undefined;
}

/** A file that is read again and again, or the keys themselves. */
export type CursorKeyConfig = { readonly file: string } | { readonly text: string };

/** What the schema cannot know by itself. */
export interface ConfigOptions {
  /** Whether standard output is a terminal: then logs are made for eyes. */
  readonly isTerminal: boolean;
}

/**
 * Parses the environment. A variable that is empty counts as unset.
 * @throws {StartError} with one line per wrong variable.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>, options: ConfigOptions): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const result = v.safeParse(environmentSchema(options), given);
  if (!result.success) throw new StartError(result.issues.map(describe).join('\n'));
  const variables = result.output;
  return {
    host: variables.HOST,
    publicPort: variables.PORT,
    controllerPort: variables.CONTROLLER_PORT,
    opsPort: variables.OPS_PORT,
    allowedOrigins: variables.CORS_ORIGINS ?? [],
    ...databaseAddresses(variables),
    databaseServers: variables.DATABASE_SERVERS,
    dataDir: resolve(variables.DATA_DIR),
    issuer: issuerConfig(variables),
    kafka: variables.EVENT_LOG === 'kafka' ? kafkaConfig(variables) : undefined,
    kindsModule: variables.KINDS,
    logFormat: variables.LOG_FORMAT,
    logLevel: variables.LOG_LEVEL,
    eventRetentionHours: variables.EVENT_RETENTION_HOURS,
    watchGroupIdleDays: variables.WATCH_GROUP_IDLE_DAYS,
    reconcileConcurrency: variables.RECONCILE_CONCURRENCY,
    tenantGraceSeconds: variables.TENANT_GRACE_SECONDS,
    stopDelaySeconds: variables.STOP_DELAY_SECONDS,
    limits: limitsConfig(variables),
    orphanGraceHours: variables.ORPHAN_GRACE_HOURS,
    cursorKeys: cursorKeyConfig(variables.CURSOR_KEYS_FILE, variables.CURSOR_KEYS),
  };
}

function cursorKeyConfig(file: string | undefined, text: string | undefined): CursorKeyConfig | undefined {
  if (file !== undefined) return { file: resolve(file) };
  return text === undefined ? undefined : { text };
}

function environmentSchema(options: ConfigOptions) {
  return v.pipe(
    v.object({
      HOST: v.optional(v.pipe(v.string(), v.regex(/^[^\s/]+$/, 'a host name or an IP address')), '127.0.0.1'),
      PORT: v.optional(port(), '8080'),
      CONTROLLER_PORT: v.optional(port(), '8081'),
      OPS_PORT: v.optional(port(), '9090'),
      CORS_ORIGINS: origins(),
      ...databaseVariables(),
      DATABASE_SERVERS: databaseServersVariable(),
      DATA_DIR: v.optional(path("a folder's path"), '.plumbline'),
      ...issuerVariables(),
      EVENT_LOG: v.optional(oneOf(EVENT_LOGS), 'postgres'),
      ...kafkaVariables(),
      KINDS: v.optional(path("a module's path or a package's name")),
      LOG_FORMAT: v.optional(oneOf(LOG_FORMATS), options.isTerminal ? 'pretty' : 'json'),
      LOG_LEVEL: v.optional(oneOf(LOG_LEVELS), 'info'),
      EVENT_RETENTION_HOURS: v.optional(
        integer(1, MAX_RETENTION_HOURS, `hours from 1 to ${MAX_RETENTION_HOURS}`),
        '168',
      ),
      WATCH_GROUP_IDLE_DAYS: v.optional(integer(1, 3_650, 'days from 1 to 3650'), '30'),
      RECONCILE_CONCURRENCY: v.optional(integer(1, 1_000, 'passes at once, from 1 to 1000'), '10'),
      TENANT_GRACE_SECONDS: v.optional(integer(0, 86_400, 'seconds from 0 to 86400'), '30'),
      STOP_DELAY_SECONDS: v.optional(integer(0, 600, 'seconds from 0 to 600'), '0'),
      ...limitVariables(),
      ORPHAN_GRACE_HOURS: v.optional(
        integer(
          1,
          MAX_RETENTION_HOURS,
          `hours from 1 to ${MAX_RETENTION_HOURS}; unset: orphans are left where they are`,
        ),
      ),
      CURSOR_KEYS_FILE: v.optional(path("a file's path")),
      CURSOR_KEYS: v.optional(v.pipe(v.string(), v.check(areCursorKeys, CURSOR_KEYS_FORM))),
    }),
    // A partial check runs also when other variables are wrong.
    v.partialCheck(
      [['DATABASE_URL'], ['DATABASE_DIRECT_URL']],
      (given) => given.DATABASE_DIRECT_URL === undefined || given.DATABASE_URL !== undefined,
      'DATABASE_URL is not set; beside DATABASE_DIRECT_URL it names the pooler',
    ),
    v.partialCheck(
      [['EVENT_LOG'], ['KAFKA_BROKERS']],
      (given) => given.EVENT_LOG !== 'kafka' || given.KAFKA_BROKERS !== undefined,
      'KAFKA_BROKERS is not set; with EVENT_LOG=kafka it names the brokers: host:port,host:port',
    ),
    v.partialCheck(
      [['KAFKA_SASL_MECHANISM'], ['KAFKA_USERNAME'], ['KAFKA_PASSWORD']],
      (given) => new Set(SASL_VARIABLES.map((name) => given[name] === undefined)).size === 1,
      `${SASL_VARIABLES.join(', ')} are set together or not at all`,
    ),
    v.partialCheck(
      [['KAFKA_SSL'], ['KAFKA_CLIENT_CERT_FILE'], ['KAFKA_CLIENT_KEY_FILE']],
      isCertificateWhole,
      CLIENT_CERTIFICATE_RULE,
    ),
    v.partialCheck(
      [['TOKEN_ISSUER'], ['TOKEN_JWKS_URL']],
      (given) => new Set(ISSUER_VARIABLES.map((name) => given[name] === undefined)).size === 1,
      `${ISSUER_VARIABLES.join(' and ')} are set together or not at all`,
    ),
    v.partialCheck(
      [['TOKEN_PUBLIC_AUDIENCE'], ['TOKEN_PRIVATE_AUDIENCE']],
      (given) => given.TOKEN_PUBLIC_AUDIENCE !== given.TOKEN_PRIVATE_AUDIENCE,
      'TOKEN_PUBLIC_AUDIENCE and TOKEN_PRIVATE_AUDIENCE are the same; allowed: two that differ',
    ),
    v.partialCheck(
      [['CURSOR_KEYS_FILE'], ['CURSOR_KEYS']],
      (given) => given.CURSOR_KEYS_FILE === undefined || given.CURSOR_KEYS === undefined,
      'CURSOR_KEYS_FILE and CURSOR_KEYS are both set; allowed: one of them',
    ),
    v.partialCheck([['PORT'], ['CONTROLLER_PORT'], ['OPS_PORT']], differ, ({ input }) => {
      const given = PORTS.map((name) => input[name]).join(', ');
      return `${PORTS.join(', ')} are ${given}; allowed: three that differ, or 0`;
    }),
  );
}

function port() {
  return integer(0, 65_535, 'an integer from 0 to 65535, where 0 picks a free port');
}

function areCursorKeys(value: string): boolean {
  try {
    return parseCursorKeys(value).length > 0;
  } catch {
    return false;
  }
}

function differ(ports: Readonly<Record<(typeof PORTS)[number], number>>): boolean {
  const fixed = PORTS.map((name) => ports[name]).filter((number) => number !== 0);
  return new Set(fixed).size === fixed.length;
}

function describe(issue: v.BaseIssue<unknown>): string {
  const [item] = issue.path ?? [];
  if (!item) return issue.message;
  return `${String(item.key)} is "${mask(item.key, String(item.value))}"; allowed: ${issue.message}`;
}

function mask(variable: unknown, value: string): string {
  if (variable === 'KAFKA_PASSWORD' || variable === 'CURSOR_KEYS') return '***';
  return variable === 'DATABASE_SERVERS' ? maskDatabaseServers(value) : maskDatabaseUrl(value);
}

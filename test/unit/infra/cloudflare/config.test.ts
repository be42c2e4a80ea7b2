import { describe, expect, test } from 'vitest';
import { readEdgeConfig, readLocalEdgeConfig } from '#infra/cloudflare/config.ts';

const namespace = { getByName: () => undefined };
const KEY = '0:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

const COMPLETE: Readonly<Record<string, unknown>> = {
  HYPERDRIVE: { connectionString: 'postgres://user:secret@db.example/plumbline' },
  WATCH_SHARD: namespace,
  BACKGROUND: namespace,
  KAFKA_RELAY: namespace,
  TOKEN_ISSUER: 'https://issuer.example',
  TOKEN_JWKS_URL: 'https://issuer.example/keys',
};

function complaintsAbout(changes: Readonly<Record<string, unknown>>): readonly string[] {
  try {
    readEdgeConfig({ ...COMPLETE, ...changes });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    expect(error.name).toBe('StartError');
    return error.message.split('\n');
  }
  return [];
}

describe('a worker', () => {
  test('needs the bindings that the README calls neither optional nor given, and no others', () => {
    expect(complaintsAbout({})).toEqual([]);
    for (const name of Object.keys(COMPLETE)) {
      expect(complaintsAbout({ [name]: undefined }).join('\n'), name).toContain(name);
    }
  });

  test('without any names all that it needs', () => {
    const all = complaintsAbout(Object.fromEntries(Object.keys(COMPLETE).map((name) => [name, undefined])));
    for (const name of Object.keys(COMPLETE)) expect(all.join('\n')).toContain(name);
  });

  test('is told what is missing beside what is wrong', () => {
    const wrong = { TOKEN_ISSUER: undefined, TOKEN_JWKS_URL: undefined, WATCH_SHARDS: '0', LOG_LEVEL: 'loud' };
    expect(complaintsAbout(wrong).map((line) => line.split(';')[0])).toEqual([
      'TOKEN_ISSUER is not bound',
      'TOKEN_JWKS_URL is not bound',
      'WATCH_SHARDS is "0"',
      'LOG_LEVEL is "loud"',
    ]);
  });

  test.each<[binding: string, value: unknown, said: string | RegExp]>([
    ['HYPERDRIVE', 'postgres://user:secret@db.example/plumbline', /^HYPERDRIVE is not bound; needed: a Hyperdrive/],
    ['HYPERDRIVE', namespace, /^HYPERDRIVE is not bound/],
    ['HYPERDRIVE', null, /^HYPERDRIVE is not bound/],
    ['WATCH_SHARD', 'WatchShard', /^WATCH_SHARD is not bound; needed: the Durable Object class WatchShard/],
    ['WATCH_SHARD', { get: () => undefined, put: () => undefined }, /^WATCH_SHARD is not bound/],
    ['BACKGROUND', 7, /^BACKGROUND is not bound; needed: the Durable Object class Background/],
    ['KAFKA_RELAY', {}, /^KAFKA_RELAY is not bound; needed: the Durable Object class KafkaRelay/],
    ['TOKEN_ISSUER', '', /TOKEN_ISSUER and TOKEN_JWKS_URL are set together/],
    ['TOKEN_ISSUER', ' me ', /^TOKEN_ISSUER is " me "; allowed: what tokens have as "iss"/],
    ['TOKEN_ISSUER', { url: 'https://issuer.example' }, /TOKEN_ISSUER and TOKEN_JWKS_URL are set together/],
    ['TOKEN_JWKS_URL', 'http://issuer.example/keys', /^TOKEN_JWKS_URL is .*; allowed: an https URL/],
    ['TOKEN_JWKS_URL', 'keys', /^TOKEN_JWKS_URL is "keys"/],
    ['TOKEN_JWKS_URL', 'https://user:secret@issuer.example/keys', /^TOKEN_JWKS_URL is "https:\/\/user:\*\*\*@/],
    ['TOKEN_PUBLIC_AUDIENCE', 'plumbline/private', /^TOKEN_PUBLIC_AUDIENCE and TOKEN_PRIVATE_AUDIENCE are the same/],
    ['TOKEN_ROLES_CLAIM', '/~2', /^TOKEN_ROLES_CLAIM is "\/~2"/],
    ['CONTROLLER_HOST', 'https://ctl.example', /^CONTROLLER_HOST is "https:\/\/ctl.example"; allowed: a host name/],
    ['CONTROLLER_HOST', 'ctl.example/', /^CONTROLLER_HOST is/],
    // As no URL has it: nothing would ever be asked of it.
    ['CONTROLLER_HOST', 'Ctl.example', /^CONTROLLER_HOST is "Ctl.example"; allowed: a host name in lower case/],
    ['CONTROLLER_HOST', 'ctl.example:443', /^CONTROLLER_HOST is "ctl.example:443"/],
    ['OPS_HOST', 'ops example', /^OPS_HOST is "ops example"/],
    ['OPS_HOST', 'ops.example:99999', /^OPS_HOST is/],
    ['WATCH_SHARDS', '0', 'WATCH_SHARDS is "0"; allowed: 1 to 1000'],
    ['WATCH_SHARDS', '1001', 'WATCH_SHARDS is "1001"; allowed: 1 to 1000'],
    ['WATCH_SHARDS', '1.5', 'WATCH_SHARDS is "1.5"; allowed: 1 to 1000'],
    ['WATCH_SHARDS', -1, 'WATCH_SHARDS is "-1"; allowed: 1 to 1000'],
    ['TENANT_REQUESTS_AT_ONCE', '0', 'TENANT_REQUESTS_AT_ONCE is "0"; allowed: 1 to 10000'],
    ['CURSOR_KEYS', 'secret', /^CURSOR_KEYS is "\*\*\*"; allowed: keys in the order of their ids/],
    ['CURSOR_KEYS', `${KEY} ${KEY}`, /^CURSOR_KEYS is "\*\*\*"/],
    ['CURSOR_KEYS_FILE', '/etc/keys', /CURSOR_KEYS_FILE is "\/etc\/keys"; allowed: nothing, for a worker has no files/],
    ['KAFKA_CLIENT_CERT_FILE', 'tls.crt', /^KAFKA_CLIENT_CERT_FILE is "tls.crt"; allowed: nothing, for sockets/],
    ['DATABASE_SERVERS', 'one=mysql://user:secret@db', /^DATABASE_SERVERS is/],
    ['CORS_ORIGINS', 'app.example', /^CORS_ORIGINS is "app.example"/],
    ['EVENT_LOG', 'rabbit', 'EVENT_LOG is "rabbit"; allowed: postgres, kafka'],
    ['EVENT_LOG', 'kafka', /^KAFKA_BROKERS is not set/],
    ['EVENT_RETENTION_HOURS', 'week', /^EVENT_RETENTION_HOURS is "week"; allowed: hours/],
    ['WATCH_GROUP_IDLE_DAYS', '0', /^WATCH_GROUP_IDLE_DAYS is "0"/],
    ['TENANT_GRACE_SECONDS', '-1', /^TENANT_GRACE_SECONDS is "-1"/],
    ['RECONCILE_CONCURRENCY', '0', /^RECONCILE_CONCURRENCY is "0"/],
    ['ORPHAN_GRACE_HOURS', '0', /^ORPHAN_GRACE_HOURS is "0"/],
    ['TENANT_REQUESTS_PER_SECOND', '0', /^TENANT_REQUESTS_PER_SECOND is "0"/],
    ['TENANT_WATCHERS', 'many', /^TENANT_WATCHERS is "many"/],
    ['MAX_WATCHERS', '0', /^MAX_WATCHERS is "0"/],
    ['LOG_LEVEL', 'loud', /^LOG_LEVEL is "loud"; allowed: trace/],
  ])('with %s %j does not start, and says what is allowed', (binding, value, said) => {
    const complaints = complaintsAbout({ [binding]: value });
    expect(complaints.some((line) => (typeof said === 'string' ? line === said : said.test(line)))).toBe(true);
    expect(complaints.join('\n')).not.toContain('secret');
  });

  test('tells two hosts apart', () => {
    expect(complaintsAbout({ CONTROLLER_HOST: 'a.example', OPS_HOST: 'a.example' })).toEqual([
      'CONTROLLER_HOST and OPS_HOST are the same; allowed: two that differ',
    ]);
    expect(complaintsAbout({ CONTROLLER_HOST: 'a.example', OPS_HOST: 'a.example:8443' })).toEqual([]);
  });

  test('takes numbers as wrangler.jsonc has them, and what is empty as not set', () => {
    const { shardCount, opsHost, config } = readEdgeConfig({
      ...COMPLETE,
      WATCH_SHARDS: 4,
      TENANT_WATCHERS: 7,
      OPS_HOST: '',
      CURSOR_KEYS: KEY,
    });
    expect([shardCount, opsHost, config.limits.tenantWatchers]).toEqual([4, undefined, 7]);
    expect(config.cursorKeys).toEqual({ text: KEY });
  });
});

describe('on this machine, where the bindings are given', () => {
  test('an issuer is optional, and shards are as many as on the platform', () => {
    const { config, shardCount } = readLocalEdgeConfig({ WATCH_SHARDS: '3', OPS_HOST: '' }, { isTerminal: true });
    expect([config.issuer, config.logFormat, shardCount]).toEqual([undefined, 'pretty', 3]);
  });

  test.each([
    ['CONTROLLER_HOST', 'CONTROLLER_PORT'],
    ['OPS_HOST', 'OPS_PORT'],
  ])('%s is refused, for there is %s', (name, port) => {
    expect(() => readLocalEdgeConfig({ [name]: 'own.example' }, { isTerminal: false })).toThrow(
      new RegExp(`^${name} is "own.example"; allowed: nothing, .* ${port}$`),
    );
  });
});

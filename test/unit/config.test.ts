import { describe, expect, test } from 'vitest';
import { type Config, readConfig } from '#infra/_shared/settings/config.ts';
import { maskDatabaseUrl, statementUrl } from '#infra/_shared/settings/database-variables.ts';

const onTerminal = { isTerminal: true };

function complaintsAbout(environment: Record<string, string>): readonly string[] {
  try {
    readConfig(environment, onTerminal);
  } catch (error) {
    return error instanceof Error ? error.message.split('\n') : [];
  }
  return [];
}

describe('readConfig()', () => {
  test('needs no variable at all', () => {
    expect(readConfig({}, onTerminal)).toEqual<Config>({
      host: '127.0.0.1',
      publicPort: 8080,
      controllerPort: 8081,
      opsPort: 9090,
      allowedOrigins: [],
      databaseUrl: undefined,
      poolerUrl: undefined,
      databaseServers: {},
      dataDir: `${process.cwd()}/.plumbline`,
      issuer: undefined,
      kafka: undefined,
      kindsModule: undefined,
      logFormat: 'pretty',
      logLevel: 'info',
      eventRetentionHours: 168,
      watchGroupIdleDays: 30,
      reconcileConcurrency: 10,
      tenantGraceSeconds: 30,
      stopDelaySeconds: 0,
      limits: {
        tenantObjects: 200_000,
        tenantRequestsPerSecond: 1_000,
        tenantWatchers: 2_000,
        maxWatchers: 20_000,
      },
      orphanGraceHours: undefined,
      cursorKeys: undefined,
    });
  });

  test('takes every variable that is set', () => {
    const config = readConfig(
      {
        HOST: '0.0.0.0',
        PORT: '1',
        CONTROLLER_PORT: '2',
        OPS_PORT: '65535',
        CORS_ORIGINS: 'https://app.example.dev, http://localhost:5173',
        DATABASE_URL: 'postgresql://jane:secret@db.example.dev:6432/plumbline?sslmode=require',
        DATABASE_SERVERS:
          'local=postgres://jane:secret@db.example.dev/postgres\n spare=postgresql://[::1]:5433/postgres',
        DATA_DIR: '/srv/plumbline',
        EVENT_LOG: 'postgres',
        KINDS: './kinds.ts',
        LOG_FORMAT: 'json',
        LOG_LEVEL: 'debug',
        EVENT_RETENTION_HOURS: '24',
        WATCH_GROUP_IDLE_DAYS: '3650',
        STOP_DELAY_SECONDS: '5',
      },
      onTerminal,
    );
    expect(config).toEqual<Config>({
      host: '0.0.0.0',
      publicPort: 1,
      controllerPort: 2,
      opsPort: 65_535,
      allowedOrigins: ['https://app.example.dev', 'http://localhost:5173'],
      databaseUrl: 'postgresql://jane:secret@db.example.dev:6432/plumbline?sslmode=require',
      poolerUrl: undefined,
      databaseServers: {
        local: 'postgres://jane:secret@db.example.dev/postgres',
        spare: 'postgresql://[::1]:5433/postgres',
      },
      dataDir: '/srv/plumbline',
      issuer: undefined,
      kafka: undefined,
      kindsModule: './kinds.ts',
      logFormat: 'json',
      logLevel: 'debug',
      eventRetentionHours: 24,
      watchGroupIdleDays: 3650,
      reconcileConcurrency: 10,
      tenantGraceSeconds: 30,
      stopDelaySeconds: 5,
      limits: {
        tenantObjects: 200_000,
        tenantRequestsPerSecond: 1_000,
        tenantWatchers: 2_000,
        maxWatchers: 20_000,
      },
      orphanGraceHours: undefined,
      cursorKeys: undefined,
    });
  });

  test('takes an empty variable for one that is not set', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: '', LOG_FORMAT: '' }, onTerminal)).toEqual(readConfig({}, onTerminal));
  });

  test('logs JSON where nobody looks', () => {
    expect(readConfig({}, { isTerminal: false }).logFormat).toBe('json');
    expect(readConfig({ LOG_FORMAT: 'pretty' }, { isTerminal: false }).logFormat).toBe('pretty');
  });

  test('lets all three ports be picked', () => {
    const { publicPort, controllerPort, opsPort } = readConfig(
      { PORT: '0', CONTROLLER_PORT: '0', OPS_PORT: '0' },
      onTerminal,
    );
    expect([publicPort, controllerPort, opsPort]).toEqual([0, 0, 0]);
  });

  test.each(['-1', '65536', '80a0', '8080.5', ' 8080', '1e3', '0x50', '99999999999999999999'])(
    'refuses port %j',
    (port) => {
      expect(complaintsAbout({ CONTROLLER_PORT: port })).toEqual([
        `CONTROLLER_PORT is "${port}"; allowed: an integer from 0 to 65535, where 0 picks a free port`,
      ]);
    },
  );

  test('tells all that is wrong at once, each with its value and what is allowed', () => {
    const complaints = complaintsAbout({
      HOST: 'a b',
      PORT: 'x',
      OPS_PORT: '70000',
      CORS_ORIGINS: 'https://app.example.dev/',
      DATABASE_URL: 'mysql://jane:secret@db/x',
      DATA_DIR: ' ',
      EVENT_LOG: 'redis',
      KINDS: ' ',
      LOG_FORMAT: 'xml',
      LOG_LEVEL: 'loud',
      EVENT_RETENTION_HOURS: '0',
      WATCH_GROUP_IDLE_DAYS: '3651',
      TENANT_OBJECTS: '0',
      MAX_WATCHERS: '1e9',
    });
    expect(complaints).toEqual([
      'HOST is "a b"; allowed: a host name or an IP address',
      'PORT is "x"; allowed: an integer from 0 to 65535, where 0 picks a free port',
      'OPS_PORT is "70000"; allowed: an integer from 0 to 65535, where 0 picks a free port',
      'CORS_ORIGINS is "https://app.example.dev/"; allowed: origins as browsers send them, by comma, such as https://app.example.com, or *',
      'DATABASE_URL is "mysql://jane:***@db/x"; allowed: postgres://user:password@host:port/database',
      `DATA_DIR is " "; allowed: a folder's path`,
      'EVENT_LOG is "redis"; allowed: postgres, kafka',
      `KINDS is " "; allowed: a module's path or a package's name`,
      'LOG_FORMAT is "xml"; allowed: pretty, json',
      'LOG_LEVEL is "loud"; allowed: trace, debug, info, warn, error, fatal, silent',
      'EVENT_RETENTION_HOURS is "0"; allowed: hours from 1 to 87600',
      'WATCH_GROUP_IDLE_DAYS is "3651"; allowed: days from 1 to 3650',
      'TENANT_OBJECTS is "0"; allowed: objects of a kind from 1 to 999999999',
      'MAX_WATCHERS is "1e9"; allowed: open watches from 1 to 999999999',
    ]);
  });

  test('refuses one port for two listeners, also beside another mistake', () => {
    expect(complaintsAbout({ OPS_PORT: '8080', LOG_LEVEL: 'loud' })).toEqual([
      'LOG_LEVEL is "loud"; allowed: trace, debug, info, warn, error, fatal, silent',
      'PORT, CONTROLLER_PORT, OPS_PORT are 8080, 8081, 8080; allowed: three that differ, or 0',
    ]);
  });
});

describe('the addresses of the database', () => {
  const DATABASE_URL = 'postgres://pooler/plumbline';
  const DIRECT = 'postgres://database/plumbline';

  test.each([
    [{ DATABASE_URL }, { databaseUrl: DATABASE_URL, poolerUrl: undefined }, DATABASE_URL],
    [{ DATABASE_URL, DATABASE_DIRECT_URL: DIRECT }, { databaseUrl: DIRECT, poolerUrl: DATABASE_URL }, DIRECT],
    [{ DATABASE_URL, DATABASE_DIRECT_URL: 'none' }, { databaseUrl: undefined, poolerUrl: DATABASE_URL }, DATABASE_URL],
    [{}, { databaseUrl: undefined, poolerUrl: undefined }, undefined],
  ])('of %j', (variables, addresses, forStatements) => {
    const config = readConfig(variables, onTerminal);
    expect(config).toMatchObject(addresses);
    expect(statementUrl(config)).toBe(forStatements);
  });

  test('are told when they are wrong, and what is allowed', () => {
    expect(complaintsAbout({ DATABASE_DIRECT_URL: 'none' })).toEqual([
      'DATABASE_URL is not set; beside DATABASE_DIRECT_URL it names the pooler',
    ]);
    expect(complaintsAbout({ DATABASE_URL: 'none' })).toEqual([
      'DATABASE_URL is "none"; allowed: postgres://user:password@host:port/database',
    ]);
    expect(complaintsAbout({ DATABASE_URL, DATABASE_DIRECT_URL: 'no' })).toEqual([
      'DATABASE_DIRECT_URL is "no"; allowed: postgres://user:password@host:port/database, or none where only the pooler of ' +
        'DATABASE_URL can be reached',
    ]);
  });
});

describe('the issuer of tokens', () => {
  const ISSUER = { TOKEN_ISSUER: 'https://id.example', TOKEN_JWKS_URL: 'https://id.example/keys' };

  test('is none unless it is named, and then has claims and audiences by default', () => {
    expect(readConfig({ TOKEN_ROLES_CLAIM: 'groups' }, onTerminal).issuer).toBeUndefined();
    expect(readConfig(ISSUER, onTerminal).issuer).toEqual({
      issuer: 'https://id.example',
      jwksUrl: 'https://id.example/keys',
      audienceNames: { public: 'plumbline/public', private: 'plumbline/private' },
      claims: { tenants: ['tenants'], roles: ['roles'] },
    });
  });

  test('has claims by name, which may be a URL, or by a pointer to one within another', () => {
    const names = { TOKEN_TENANTS_CLAIM: 'https://example.com/tenants', TOKEN_ROLES_CLAIM: '/realm_access/a~1b' };
    expect(readConfig({ ...ISSUER, ...names }, onTerminal).issuer?.claims).toEqual({
      tenants: ['https://example.com/tenants'],
      roles: ['realm_access', 'a/b'],
    });
  });

  test.each(['http://localhost:1/keys', 'http://127.0.0.1/keys', 'http://[::1]:8080/keys', 'http://127.1/keys'])(
    'may be asked without TLS on this machine: %s',
    (url) => {
      expect(readConfig({ ...ISSUER, TOKEN_JWKS_URL: url }, onTerminal).issuer?.jwksUrl).toBe(url);
    },
  );

  test.each([
    'http://id.example/keys',
    'http://localhost.example/keys',
    'http://127.0.0.1.example/keys',
    'http://10.0.0.1/keys',
    'https://jane:secret@id.example/keys',
    'file:///etc/keys',
    'data:application/json,{}',
    'id.example/keys',
  ])('is not asked at %s', (url) => {
    const [complaint, ...others] = complaintsAbout({ ...ISSUER, TOKEN_JWKS_URL: url });
    expect(complaint).toMatch(/^TOKEN_JWKS_URL is ".*"; allowed: an https URL without a user and password/);
    expect(complaint).not.toContain('secret');
    expect(others).toEqual([]);
  });

  test.each<[Record<string, string>, string]>([
    [{ TOKEN_ISSUER: '' }, 'TOKEN_ISSUER and TOKEN_JWKS_URL are set together or not at all'],
    [{ TOKEN_JWKS_URL: '' }, 'TOKEN_ISSUER and TOKEN_JWKS_URL are set together or not at all'],
    [{ TOKEN_PUBLIC_AUDIENCE: 'plumbline/private' }, 'TOKEN_PUBLIC_AUDIENCE and TOKEN_PRIVATE_AUDIENCE are the same'],
    [{ TOKEN_ROLES_CLAIM: '/a~2' }, 'TOKEN_ROLES_CLAIM is "/a~2"; allowed: the name of a claim'],
    [{ TOKEN_TENANTS_CLAIM: ' x' }, 'TOKEN_TENANTS_CLAIM is " x"; allowed: the name of a claim'],
    [{ TOKEN_ISSUER: ' https://id.example' }, 'TOKEN_ISSUER is " https://id.example"; allowed: what tokens have as'],
  ])('is not set by %j', (change, complaint) => {
    expect(complaintsAbout({ ...ISSUER, ...change })).toEqual([expect.stringContaining(complaint)]);
  });
});

describe('the servers of managed databases', () => {
  const allowed =
    'name=postgres://user:password@host:port/maintenance-database, several with white space between them; ' +
    'names are DNS labels, each once, and passwords percent-encoded';

  test.each([
    ['local', '…'],
    ['Local=postgres://db/postgres', 'Local=postgres://db/postgres'],
    ['a=postgres://db/postgres a=postgres://other/postgres', 'a=postgres://db/postgres a=postgres://other/postgres'],
    ['a=mysql://jane:secret@db/x', '…'],
    ['a=postgres://db', 'a=postgres://db'],
    ['a=postgres:///postgres', 'a=postgres:///postgres'],
    ['a=postgres://jane:secret@db', 'a=postgres://jane:***@db'],
    ['a=postgres://jane:se cret@db/postgres', 'a=postgres://… …'],
    ['a=postgres://jane:s#cret@db/postgres', 'a=postgres://…'],
  ])('are not %s', (value, shown) => {
    expect(complaintsAbout({ DATABASE_SERVERS: value })).toEqual([
      `DATABASE_SERVERS is "${shown}"; allowed: ${allowed}`,
    ]);
  });
});

describe('the brokers of an event log in Kafka', () => {
  test('are looked for only when it is chosen', () => {
    expect(readConfig({ KAFKA_BROKERS: 'a:9092' }, onTerminal).kafka).toBeUndefined();
    expect(complaintsAbout({ EVENT_LOG: 'kafka' })).toEqual([
      'KAFKA_BROKERS is not set; with EVENT_LOG=kafka it names the brokers: host:port,host:port',
    ]);
  });

  test('are a list of addresses', () => {
    const kafka = readConfig({ EVENT_LOG: 'kafka', KAFKA_BROKERS: 'a:9092, 10.0.0.1:19092' }, onTerminal).kafka;
    expect(kafka).toEqual({
      brokers: ['a:9092', '10.0.0.1:19092'],
      ssl: false,
      clientCertificate: undefined,
      sasl: undefined,
      topicPrefix: 'plumbline.events.',
      compression: 'none',
    });
    for (const wrong of ['a', 'a:0', 'a:65536', 'a:9092,', 'http://a:9092', ':9092', '[::1]:9092']) {
      expect(complaintsAbout({ EVENT_LOG: 'kafka', KAFKA_BROKERS: wrong })).toHaveLength(1);
    }
  });

  test('are signed in to with all that it takes', () => {
    const brokers = { EVENT_LOG: 'kafka', KAFKA_BROKERS: 'a:9092', KAFKA_SSL: 'true' };
    const credentials = { KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_USERNAME: 'jane', KAFKA_PASSWORD: 'secret' };
    expect(readConfig({ ...brokers, ...credentials }, onTerminal).kafka).toMatchObject({
      ssl: true,
      sasl: { mechanism: 'scram-sha-512', username: 'jane', password: 'secret' },
    });
    for (const name of Object.keys(credentials)) {
      expect(complaintsAbout({ ...brokers, ...credentials, [name]: '' })).toEqual([
        'KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD are set together or not at all',
      ]);
    }
  });

  test('are shown a certificate only over TLS, and with its key', () => {
    const brokers = { EVENT_LOG: 'kafka', KAFKA_BROKERS: 'a:9092', KAFKA_SSL: 'true' };
    const files = { KAFKA_CLIENT_CERT_FILE: 'tls.crt', KAFKA_CLIENT_KEY_FILE: 'tls.key' };
    const { kafka } = readConfig({ ...brokers, ...files }, onTerminal);
    expect(kafka?.clientCertificate).toEqual({ certFile: 'tls.crt', keyFile: 'tls.key' });
    for (const missing of ['KAFKA_SSL', ...Object.keys(files)]) {
      expect(complaintsAbout({ ...brokers, ...files, [missing]: '' })).toEqual([
        'KAFKA_CLIENT_CERT_FILE and KAFKA_CLIENT_KEY_FILE are set together, with KAFKA_SSL=true, or not at all',
      ]);
    }
  });

  test('are told without the password', () => {
    const complaints = complaintsAbout({
      EVENT_LOG: 'kafka',
      KAFKA_BROKERS: 'a',
      KAFKA_SASL_MECHANISM: 'kerberos',
      KAFKA_USERNAME: 'jane',
      KAFKA_PASSWORD: 'secret',
    });
    expect(complaints).toHaveLength(2);
    expect(complaints.join()).not.toContain('secret');
  });
});

describe('the keys of cursors', () => {
  const key = 'A'.repeat(43);

  test('lie in a file, or are given', () => {
    expect(readConfig({ CURSOR_KEYS_FILE: '/run/secrets/keys' }, onTerminal).cursorKeys).toEqual({
      file: '/run/secrets/keys',
    });
    expect(readConfig({ CURSOR_KEYS: `0:${key}` }, onTerminal).cursorKeys).toEqual({ text: `0:${key}` });
    expect(complaintsAbout({ CURSOR_KEYS: `0:${key}`, CURSOR_KEYS_FILE: 'keys' })).toEqual([
      'CURSOR_KEYS_FILE and CURSOR_KEYS are both set; allowed: one of them',
    ]);
  });

  test.each(['x', key, `0:${key}A`, `0:${key},0:${key}`, `1:${key},0:${key}`, `0:${key}@noon`, `0:${key},128:${key}`])(
    'are told without them when they are malformed: %s',
    (value) => {
      const complaints = complaintsAbout({ CURSOR_KEYS: value });
      expect(complaints).toEqual([
        expect.stringMatching(/^CURSOR_KEYS is "\*\*\*"; allowed: keys in the order of their ids/),
      ]);
      expect(complaints.join()).not.toContain(key);
    },
  );
});

describe('maskDatabaseUrl()', () => {
  test.each([
    ['postgres://jane:secret@db:5432/x', 'postgres://jane:***@db:5432/x'],
    ['postgres://:secret@db/x', 'postgres://:***@db/x'],
    ['postgres://jane:s/e@c:r?e#t@db/x', 'postgres://jane:***@db/x'],
    [
      'postgres://db/x?user=jane&password=secret&sslmode=require',
      'postgres://db/x?user=jane&password=***&sslmode=require',
    ],
    ['host=db password=secret user=jane', 'host=db password=*** user=jane'],
    ['postgres://jane@db:5432/x', 'postgres://jane@db:5432/x'],
  ])('shows %s as %s', (url, masked) => {
    expect(maskDatabaseUrl(url)).toBe(masked);
  });
});

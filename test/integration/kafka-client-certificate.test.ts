/** Brokers that know their clients by certificates. */

import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { findWantedLog } from '#infra/_shared/event-log/event-log.ts';
import { describeKafka, startTestKafka } from '#test/support/kafka.ts';
import { silentLogger } from '#test/support/silent-logger.ts';

const TLS = join(import.meta.dirname, '../support/tls');
const FILES = { KAFKA_CLIENT_CERT_FILE: join(TLS, 'localhost.crt'), KAFKA_CLIENT_KEY_FILE: join(TLS, 'localhost.key') };
const PATIENCE_MS = 120_000;

describeKafka('brokers that want the certificate of a client', () => {
  const trusted = getCACertificates();
  let kafka: Awaited<ReturnType<typeof startTestKafka>>;

  beforeAll(async () => {
    kafka = await startTestKafka({
      access: { isEncrypted: true },
      settings: {
        'listener.name.client.ssl.client.auth': 'required',
        'listener.name.client.ssl.truststore.type': 'PEM',
        'listener.name.client.ssl.truststore.location': FILES.KAFKA_CLIENT_CERT_FILE,
      },
    });
    setDefaultCACertificates([...trusted, kafka.certificate ?? '']);
  }, PATIENCE_MS);

  afterAll(async () => {
    setDefaultCACertificates(trusted);
    await kafka?.stop();
  });

  const find = (variables: Readonly<Record<string, string>>) =>
    findWantedLog(
      readConfig(
        { EVENT_LOG: 'kafka', KAFKA_BROKERS: kafka.brokers.join(','), KAFKA_SSL: 'true', ...variables },
        { isTerminal: false },
      ),
      silentLogger,
    );

  test('take the one of the files that are configured', async () => {
    expect(await find(FILES)).toMatchObject({ log: 'kafka', clusterId: expect.any(String) });
  });

  test('are told apart from those that are not trusted, when there is none', async () => {
    await expect(find({})).rejects.toThrow(`${kafka.brokers[0]} wants the certificate of a client`);
  });

  test('cannot be asked when a file cannot be read', async () => {
    const gone = join(TLS, 'gone.crt');
    await expect(find({ ...FILES, KAFKA_CLIENT_CERT_FILE: gone })).rejects.toThrow(
      `KAFKA_CLIENT_CERT_FILE is "${gone}", which cannot be read: ENOENT`,
    );
  });
});

/** Who may use a cluster, and how: for tests of credentials, of rights and of TLS. By default everybody may, in clear. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

export type SaslMechanism = 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512';

export interface KafkaAccess {
  /** Clients must log in by SASL, as one of `users`, by one of these. @default no login */
  readonly mechanisms?: readonly SaslMechanism[];
  /** Name to password, of letters, digits and hyphens. Those of SCRAM are the ones of the first start on a folder. */
  readonly users?: Readonly<Record<string, string>>;
  /** Users have the rights that ACLs give them, at first none (StandardAuthorizer). @default false */
  readonly isAuthorizing?: boolean;
  /** TLS, with a certificate for 127.0.0.1 and localhost that signs itself. @default false */
  readonly isEncrypted?: boolean;
}

export interface AccessSettings {
  /** Of the listener for clients. */
  readonly protocol: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Arguments of the format of a node's storage. */
  readonly formatArguments: readonly string[];
  /** PEM: what a client is to trust. */
  readonly certificate: string | undefined;
}

const LISTENER = 'listener.name.client';
const LOGIN_MODULES = 'org.apache.kafka.common.security';
const WORD = /^[A-Za-z0-9-]+$/;
const VALID_DAYS = 3_650;

/** What an access means to a broker. A key and its certificate are made in `directory`, once. */
export async function accessSettings(access: KafkaAccess, directory: string, java: string): Promise<AccessSettings> {
  const { mechanisms = [], users = {}, isAuthorizing = false, isEncrypted = false } = access;
  for (const word of Object.entries(users).flat()) {
    if (!WORD.test(word))
      throw new StartError(`"${word}" is not a user's name or password of letters, digits and hyphens`);
  }
  const security =
    mechanisms.length > 0 ? (isEncrypted ? 'SASL_SSL' : 'SASL_PLAINTEXT') : isEncrypted ? 'SSL' : 'PLAINTEXT';
  const tls = isEncrypted ? await keyStore(directory, java) : undefined;
  return {
    protocol: security,
    settings: { ...logins(mechanisms, users), ...(isAuthorizing && AUTHORIZER), ...tls?.settings },
    formatArguments: mechanisms
      .filter((mechanism) => mechanism !== 'PLAIN')
      .flatMap((mechanism) =>
        Object.entries(users).flatMap(([name, password]) => [
          '--add-scram',
          `${mechanism}=[name=${name},password=${password}]`,
        ]),
      ),
    certificate: tls?.certificate,
  };
}

/** The nodes themselves, and whoever uses the internal listener, are anonymous. */
const AUTHORIZER: Readonly<Record<string, string>> = {
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'super.users': 'User:ANONYMOUS',
};

function logins(mechanisms: readonly SaslMechanism[], users: Readonly<Record<string, string>>): Record<string, string> {
  if (mechanisms.length === 0) return {};
  const settings: Record<string, string> = { [`${LISTENER}.sasl.enabled.mechanisms`]: mechanisms.join() };
  for (const mechanism of mechanisms) {
    const passwords = Object.entries(users).map(([name, password]) => ` user_${name}="${password}"`);
    settings[`${LISTENER}.${mechanism.toLowerCase()}.sasl.jaas.config`] =
      mechanism === 'PLAIN'
        ? `${LOGIN_MODULES}.plain.PlainLoginModule required${passwords.join('')};`
        : `${LOGIN_MODULES}.scram.ScramLoginModule required;`;
  }
  return settings;
}

async function keyStore(
  directory: string,
  java: string,
): Promise<{ settings: Readonly<Record<string, string>>; certificate: string }> {
  const store = join(directory, 'client-listener.p12');
  const passwordFile = join(directory, 'client-listener.password');
  const isMade = await stat(store).then(
    () => true,
    () => false,
  );
  if (!isMade) await writeFile(passwordFile, randomBytes(18).toString('base64url'), { mode: 0o600 });
  const password = await readFile(passwordFile, 'utf8');
  const common = ['-keystore', store, '-storetype', 'PKCS12', '-alias', 'client', '-storepass:file', passwordFile];
  if (!isMade) {
    const key = ['-keyalg', 'EC', '-groupname', 'secp256r1', '-validity', String(VALID_DAYS)];
    const names = ['-dname', 'CN=127.0.0.1', '-ext', 'san=ip:127.0.0.1,dns:localhost', '-ext', 'bc:c=ca:true'];
    await keytool(java, ['-genkeypair', ...common, ...key, ...names]);
  }
  return {
    settings: {
      [`${LISTENER}.ssl.keystore.type`]: 'PKCS12',
      [`${LISTENER}.ssl.keystore.location`]: store,
      [`${LISTENER}.ssl.keystore.password`]: password,
      [`${LISTENER}.ssl.key.password`]: password,
    },
    certificate: await keytool(java, ['-exportcert', '-rfc', ...common]),
  };
}

/** It comes with every Java. */
async function keytool(java: string, args: readonly string[]): Promise<string> {
  const program = java.includes('/') ? join(dirname(java), 'keytool') : 'keytool';
  try {
    const { stdout } = await promisify(execFile)(program, [...args]);
    return stdout;
  } catch (error) {
    throw new StartError(`the certificate for TLS cannot be made: ${messageOf(error)}`, { cause: error });
  }
}

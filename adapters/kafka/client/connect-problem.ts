/** Why a broker cannot be used, in words for whoever configured it. */

import type { KafkaSettings } from '#adapters/kafka/client/client.ts';
import { chainOf } from '#adapters/kafka/errors.ts';

export interface ConnectProblem {
  /** The broker, or something at its address, was reached, so this is what to correct. */
  readonly isRefusal: boolean;
  /** With the address. */
  readonly words: string;
}

/** OpenSSL's and Node's codes for certificates that are not believed: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const CERTIFICATE_CODE = /CERT|SIGNATURE|ALTNAME|CRL|HOSTNAME_MISMATCH|INVALID_CA|UNTRUSTED/;

/** What a server says of ours: RFC 8446 section 6.2. */
const CLIENT_CERTIFICATE_CODE = /^ERR_SSL_.*_ALERT_(CERTIFICATE_|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA)/;

export interface Attempt {
  readonly address: string;
  /** It had told its versions, and taken the login, before it failed. */
  readonly isGreeted: boolean;
  readonly settings: Pick<KafkaSettings, 'ssl' | 'sasl'>;
}

export function connectProblem(error: unknown, { address, isGreeted, settings }: Attempt): ConnectProblem {
  const { ssl, sasl } = settings;
  const facts = [...chainOf(error)];
  const code = facts.map((fact) => fact.code).find((value) => typeof value === 'string');
  const message = String(facts.at(-1)?.message);

  if (facts.some(({ name }) => name === 'KafkaJSSASLAuthenticationError')) {
    return refusal(`${address} refuses the login of "${sasl?.username}" by ${sasl?.mechanism}: ${message}`);
  }
  if (facts.some(({ type }) => type === 'UNSUPPORTED_SASL_MECHANISM')) {
    return refusal(`${address} knows no login by ${sasl?.mechanism}; configure one of its mechanisms`);
  }
  if (facts.some(({ type }) => type === 'ILLEGAL_SASL_STATE')) {
    return refusal(`${address} knows no login, and one is configured; leave it out, or use the listener that has it`);
  }
  if (code !== undefined && CLIENT_CERTIFICATE_CODE.test(code)) {
    return refusal(
      `${address} wants the certificate of a client, and not the one that is configured, if any is (${code})`,
    );
  }
  if (code !== undefined && CERTIFICATE_CODE.test(code)) {
    return refusal(
      `the TLS certificate of ${address} is not trusted (${code}); have Node trust its authority, with NODE_EXTRA_CA_CERTS`,
    );
  }
  if (ssl && (code === 'ECONNRESET' || code === 'EPROTO' || code?.startsWith('ERR_SSL_'))) {
    return refusal(`${address} speaks no TLS, and TLS is configured (${code})`);
  }
  if (facts.some(({ name }) => name === 'KafkaJSConnectionClosedError')) {
    if (isGreeted && !sasl)
      return refusal(`${address} closes the connection: it may want a login, which is not configured`);
    if (!isGreeted && !ssl)
      return refusal(
        `${address} closes the connection: it may want TLS, which is not configured, or be no Kafka broker`,
      );
    return refusal(`${address} closes the connection`);
  }
  return { isRefusal: false, words: `${address} (${code ?? message})` };
}

/** The brokers that this one names do not answer at the addresses that it gives. */
export function namedProblem(error: unknown, address: string): ConnectProblem {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  const named = errors.map((one) => {
    const { broker, code, message } = [...chainOf(one)].at(-1) ?? {};
    return `${broker ?? 'a broker'} (${String(code ?? message)})`;
  });
  return refusal(
    `${address} answers, but no broker can be reached where it says: ${named.join(', ')}; correct its advertised.listeners`,
  );
}

function refusal(words: string): ConnectProblem {
  return { isRefusal: true, words };
}

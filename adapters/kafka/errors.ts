/** What kafkajs throws, told by its facts: it may be bundled, and wraps its errors in others, so never by their class. */

import { StatusError } from '#core/status-error.ts';

/**
 * - `missing topic`: the broker that was asked knows no such topic.
 * - `too large`: a batch is above the topic's `max.message.bytes`.
 * - `out of range`: no such offset, says the broker that was asked.
 * - `unauthorised`: the principal has no right to do it.
 * - `bad credentials`: the brokers do not know the principal.
 * - `unavailable`: all else; it may pass.
 */
export type Failure =
  | 'missing topic'
  | 'too large'
  | 'out of range'
  | 'unauthorised'
  | 'bad credentials'
  | 'unavailable';

const FAILURES: Readonly<Record<string, Failure>> = {
  UNKNOWN_TOPIC_OR_PARTITION: 'missing topic',
  MESSAGE_TOO_LARGE: 'too large',
  RECORD_LIST_TOO_LARGE: 'too large',
  OFFSET_OUT_OF_RANGE: 'out of range',
  TOPIC_AUTHORIZATION_FAILED: 'unauthorised',
  CLUSTER_AUTHORIZATION_FAILED: 'unauthorised',
  SASL_AUTHENTICATION_FAILED: 'bad credentials',
  UNSUPPORTED_SASL_MECHANISM: 'bad credentials',
  ILLEGAL_SASL_STATE: 'bad credentials',
  // A name, not a type: thrown without one.
  KafkaJSSASLAuthenticationError: 'bad credentials',
};

export interface Facts {
  readonly name?: unknown;
  /** The broker's error, such as `NOT_LEADER_FOR_PARTITION`. */
  readonly type?: unknown;
  readonly message?: unknown;
  /** Of the operating system or of TLS, such as `ECONNREFUSED`; of a broker's error, its number. */
  readonly code?: unknown;
  /** The address that could not be reached. */
  readonly broker?: string;
  readonly cause?: unknown;
  /** Of an error that stands for several. */
  readonly errors?: unknown;
}

export function failureOf(error: unknown): Failure {
  for (const { type, name } of chainOf(error)) {
    const failure = FAILURES[String(type)] ?? FAILURES[String(name)];
    if (failure) return failure;
  }
  return 'unavailable';
}

/**
 * The caller's error for what kafkajs threw: that it may pass, and what an operator would have to do.
 * @param subject what was tried, for the message: `topic "…"`.
 */
export function toUnavailable(error: unknown, subject: string): StatusError {
  if (error instanceof StatusError) return error;
  const failure = failureOf(error);
  const said = failure === 'unavailable' ? brokersWords(error) : undefined;
  return unavailable(`${subject}: ${said ?? ADVICE[failure]}`, error);
}

/** Something that may pass: the caller is to try again. */
export function unavailable(message: string, cause?: unknown): StatusError {
  return new StatusError('ServiceUnavailable', message, { details: { retryAfterSeconds: 1 }, cause });
}

const ADVICE: Readonly<Record<Failure, string>> = {
  'missing topic': 'the Kafka brokers know no such topic; try again',
  'too large': 'the Kafka topic takes no batch of this size; raise its max.message.bytes',
  'out of range': 'the Kafka topic has no such offset; try again',
  unauthorised: 'the Kafka principal has no right to do this; grant it',
  'bad credentials': 'the Kafka brokers refuse the credentials; correct them',
  unavailable: 'the Kafka brokers are not available; try again',
};

/** Undefined when no broker said anything. */
function brokersWords(error: unknown): string | undefined {
  for (const { type, message } of chainOf(error)) {
    if (typeof type === 'string') return `the Kafka brokers answer ${type} (${String(message)})`;
  }
  return undefined;
}

/** An error and what caused it, outermost first. */
export function* chainOf(error: unknown): Generator<Facts> {
  for (let next = error, depth = 0; typeof next === 'object' && next !== null && depth < 8; depth += 1) {
    const facts: Facts = next;
    yield facts;
    next = facts.cause ?? (Array.isArray(facts.errors) ? (facts.errors[0] as unknown) : undefined);
  }
}

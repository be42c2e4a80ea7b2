import { createRequire } from 'node:module';

import { describe, expect, it } from 'vitest';
import { failureOf, toUnavailable } from '#adapters/kafka/errors.ts';
import { StatusError } from '#core/status-error.ts';

const require = createRequire(import.meta.url);
const kafkajs = require('kafkajs/src/errors');
const { createErrorFromCode, errorCodes } = require('kafkajs/src/protocol/error');

describe('what kafkajs throws', () => {
  it.each([
    ['UNKNOWN_TOPIC_OR_PARTITION', 'missing topic'],
    ['MESSAGE_TOO_LARGE', 'too large'],
    ['OFFSET_OUT_OF_RANGE', 'out of range'],
    ['TOPIC_AUTHORIZATION_FAILED', 'unauthorised'],
    ['CLUSTER_AUTHORIZATION_FAILED', 'unauthorised'],
    ['SASL_AUTHENTICATION_FAILED', 'bad credentials'],
    ['NOT_LEADER_FOR_PARTITION', 'unavailable'],
    ['NOT_ENOUGH_REPLICAS', 'unavailable'],
    ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'unavailable'],
  ])('%s is told as "%s", also inside of what kafkajs wraps it in', (type, failure) => {
    const error = brokerError(type);
    expect(failureOf(error)).toBe(failure);
    expect(failureOf(new kafkajs.KafkaJSNumberOfRetriesExceeded(error, { retryCount: 3 }))).toBe(failure);
    expect(failureOf(new kafkajs.KafkaJSNonRetriableError(error, { cause: error }))).toBe(failure);
    expect(failureOf(new kafkajs.KafkaJSAggregateError('creation', [error]))).toBe(failure);
  });

  it('is told without a class of kafkajs: it may be bundled twice', () => {
    expect(failureOf({ name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE' })).toBe('too large');
    expect(failureOf({ name: 'KafkaJSSASLAuthenticationError' })).toBe('bad credentials');
  });

  it.each([
    [undefined],
    [null],
    ['text'],
    [new Error('any')],
    [new kafkajs.KafkaJSConnectionError('refused', { code: 'ECONNREFUSED' })],
  ])('is unavailable when nothing is known of it: %s', (error) => {
    expect(failureOf(error)).toBe('unavailable');
  });

  it('is no endless loop when an error is its own cause', () => {
    const error: Error & { cause?: unknown } = new Error('round');
    error.cause = error;
    expect(failureOf(error)).toBe('unavailable');
  });

  it('becomes a ServiceUnavailable that can be tried again and says what to do', () => {
    const error = toUnavailable(brokerError('TOPIC_AUTHORIZATION_FAILED'), 'topic "a"');
    expect(error).toMatchObject({ reason: 'ServiceUnavailable', details: { retryAfterSeconds: 1 } });
    expect(error.message).toBe('topic "a": the Kafka principal has no right to do this; grant it');
    expect(toUnavailable(brokerError('NOT_ENOUGH_REPLICAS'), 'topic "a"').message).toBe(
      'topic "a": the Kafka brokers answer NOT_ENOUGH_REPLICAS ' +
        '(Messages are rejected since there are fewer in-sync replicas than required)',
    );
    expect(toUnavailable(new Error('ECONNREFUSED'), 'topic "a"').message).toBe(
      'topic "a": the Kafka brokers are not available; try again',
    );
    const own = new StatusError('ServiceUnavailable', 'as it is');
    expect(toUnavailable(own, 'topic "a"')).toBe(own);
  });
});

function brokerError(type: string): Error {
  const { code } = errorCodes.find((known: { readonly type: string }) => known.type === type);
  return createErrorFromCode(code);
}

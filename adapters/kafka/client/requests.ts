/**
 * Requests of the admin kind, one at a time to one broker. kafkajs's own admin throws a whole answer away when one topic
 * of it has an error, and mostly does not tell which; here each topic has its own.
 */

import { createErrorFromCode } from 'kafkajs/src/protocol/error.js';
import apiKeys from 'kafkajs/src/protocol/requests/apiKeys.js';
import { lookup, requests } from 'kafkajs/src/protocol/requests/index.js';
import type { Broker } from '#adapters/kafka/client/cluster.ts';

export interface TopicMetadata {
  readonly topicErrorCode: number;
  readonly topic: string;
  readonly partitionMetadata: readonly {
    readonly partitionErrorCode: number;
    readonly partitionId: number;
    /** -1: none now. */
    readonly leader: number;
  }[];
}

/** Who leads the first partition, the only one of our topics; undefined while nobody does. */
export function leaderOf(partitions: TopicMetadata['partitionMetadata']): number | undefined {
  const leader = partitions.find(({ partitionId }) => partitionId === 0)?.leader ?? -1;
  return leader < 0 ? undefined : leader;
}

export interface TopicErrors {
  readonly topicErrors: readonly {
    readonly topic: string;
    readonly errorCode: number;
    /** The broker's words; not from all versions. */
    readonly errorMessage?: string | null;
  }[];
}

export interface ConfigEntry {
  readonly configName: string;
  readonly configValue: string | null;
  /** Where the value comes from. */
  readonly configSource: number;
}

export interface ResourceAnswer {
  readonly resources: readonly {
    readonly errorCode: number;
    readonly errorMessage: string | null;
    readonly resourceName: string;
    /** Of DescribeConfigs. */
    readonly configEntries?: readonly ConfigEntry[];
  }[];
}

/** What the brokers answer, by the name of the request. */
export interface Answers {
  readonly Metadata: {
    readonly clusterId: string | null;
    readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[];
    readonly topicMetadata: readonly TopicMetadata[];
  };
  readonly ListOffsets: {
    readonly responses: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly errorCode: number;
        readonly offset: string;
      }[];
    }[];
  };
  readonly CreateTopics: TopicErrors;
  readonly DeleteTopics: TopicErrors;
  readonly DescribeConfigs: ResourceAnswer;
  readonly AlterConfigs: ResourceAnswer;
  readonly InitProducerId: { readonly errorCode: number };
}

/**
 * Sends one request and gives the answer as it is: with the error codes in it, which are not thrown.
 * @throws what kafkajs throws when there is no answer.
 */
export async function ask<Name extends keyof Answers>(
  broker: Broker,
  name: Name,
  args: object,
): Promise<Answers[Name]> {
  const definition = requests[name];
  const apiKey = apiKeys[name];
  if (!definition || apiKey === undefined || !broker.versions) throw new TypeError(`no ${name} request can be made`);
  const { request, response } = lookup(broker.versions)(apiKey, definition)(args);
  const answer = await broker.connectionPool.send({
    request,
    response: { decode: (bytes) => response.decode(bytes), parse: (decoded) => Promise.resolve(decoded) },
  });
  return answer as Answers[Name];
}

export type BrokerError = ReturnType<typeof createErrorFromCode>;

/** The error of an answer's code, with the broker's words where it had any; undefined for success. */
export function errorOf(code: number, message?: string | null): BrokerError | undefined {
  if (code === 0) return undefined;
  const error = createErrorFromCode(code);
  if (message) error.message = message;
  return error;
}

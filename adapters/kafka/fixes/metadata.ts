/**
 * Two things about kafkajs and the topics that there are.
 *
 * A client that knows of no topic yet asks for all of them, and fails when one has an error: a single topic of anybody that
 * is without a leader, and no producer can be made any more. So it asks for none; the brokers come with the answer anyway.
 * What is lost is the listing of topics, which nobody here uses.
 *
 * A producer that is to write to a topic which is not there asks for it again and again, and all that share the call wait.
 * It is told at once.
 */

import Encoder from 'kafkajs/src/protocol/encoder.js';
import { type Exchange, requests } from 'kafkajs/src/protocol/requests/index.js';
import { failureOf } from '#adapters/kafka/errors.ts';

interface MetadataArgs {
  readonly topics: readonly string[];
  readonly allowAutoTopicCreation?: boolean;
}

export function fixMetadata(): void {
  const definition = requests['Metadata'];
  if (!definition) throw new TypeError('kafkajs has no Metadata request');
  const { protocol } = definition;
  definition.protocol = ({ version }) => {
    const exchangeOf = protocol({ version });
    return (args): Exchange => {
      const { topics, allowAutoTopicCreation = true } = args as MetadataArgs;
      const { request, response } = exchangeOf(args);
      // Version 0 has no way to ask for none.
      if (topics.length > 0 || version === 0) return { request, response: { ...response, parse } };
      return { request: { ...request, encode: async () => askForNone() }, response };

      async function parse(answer: unknown): Promise<unknown> {
        try {
          return await response.parse(answer);
        } catch (error) {
          if (failureOf(error) === 'missing topic') (error as { retriable: boolean }).retriable = false;
          throw error;
        }
      }

      function askForNone(): Encoder {
        const encoder = new Encoder().writeInt32(0);
        return version < 4 ? encoder : encoder.writeBoolean(allowAutoTopicCreation);
      }
    };
  };
}

/**
 * A kafkajs client that knows of no topic yet asks for all that there are, and fails when one of them has an error: a
 * single topic of anybody that is without a leader, and no producer can be made any more. So it asks for none; the brokers
 * come with the answer anyway. What is lost is the listing of topics, which nobody here uses.
 */

import Encoder from 'kafkajs/src/protocol/encoder.js';
import { type Exchange, requests } from 'kafkajs/src/protocol/requests/index.js';

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
      const exchange = exchangeOf(args);
      // Version 0 has no way to ask for none.
      if (topics.length > 0 || version === 0) return exchange;
      return { ...exchange, request: { ...exchange.request, encode: async () => askForNone() } };

      function askForNone(): Encoder {
        const encoder = new Encoder().writeInt32(0);
        return version < 4 ? encoder : encoder.writeBoolean(allowAutoTopicCreation);
      }
    };
  };
}

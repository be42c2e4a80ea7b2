/** Lets kafkajs's producers send what `produceRequest` makes. */

import type Encoder from 'kafkajs/src/protocol/encoder.js';
import { type Exchange, requests } from 'kafkajs/src/protocol/requests/index.js';
import { type ProduceArgs, produceRequest } from '#adapters/kafka/wire/produce-request.ts';

/** The first one with record batches. */
const FIRST_VERSION = 3;

export function fixProduce(): void {
  const definition = requests['Produce'];
  if (!definition) throw new TypeError('kafkajs has no Produce request');
  const { protocol } = definition;
  definition.protocol = ({ version }) => {
    const exchangeOf = protocol({ version });
    if (version < FIRST_VERSION) return exchangeOf;
    return (args): Exchange => {
      const exchange = exchangeOf(args);
      return { ...exchange, request: { ...exchange.request, encode } };

      async function encode(): Promise<Pick<Encoder, 'buf' | 'buffer'>> {
        const bytes = await produceRequest(args as ProduceArgs);
        return bytes ? { buf: bytes, buffer: bytes } : exchange.request.encode();
      }
    };
  };
}

import { describe, expect, it } from 'vitest';
import { decodeMetadataAnswer, encodeMetadataRequest } from '#adapters/kafka/topics/identified-topics.ts';

/** Bytes in hexadecimal, with spaces and names of fields left out. */
function bytes(...lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => line.replace(/.*: /, '').replaceAll(' ', '')).join(''), 'hex');
}

describe('metadata with the identities of topics', () => {
  it('is asked for in version 10, without making a topic', () => {
    const long = 'x'.repeat(200);
    expect(encodeMetadataRequest(['ab', long])).toEqual(
      bytes(
        'the end of the header: 00',
        'two topics: 03',
        `no id: ${'00'.repeat(16)}`,
        'name: 03 6162',
        'tags: 00',
        `no id: ${'00'.repeat(16)}`,
        `name: c901 ${'78'.repeat(200)}`,
        'tags: 00',
        'nothing is made, no rights are wanted: 00 00 00',
        'tags: 00',
      ),
    );
  });

  it('is read from an answer, whatever else newer brokers put into it', () => {
    const id = '0123456789abcdef0123456789abcdef';
    const answer = bytes(
      'tags: 01 05 02 ffff',
      'throttled for: 00000000',
      'one broker: 02',
      'its number: 00000007',
      'its host: 02 68',
      'its port: 00002384',
      'no rack: 00',
      'tags: 00',
      'cluster: 02 63',
      'controller: 00000007',
      'two topics: 03',
      'no error: 0000',
      'name: 03 6162',
      `id: ${id}`,
      'not internal: 00',
      'one partition: 02',
      'no error: 0000',
      'partition: 00000000',
      'leader: 00000007',
      'epoch: 00000001',
      'replicas: 02 00000007',
      'in sync: 02 00000007',
      'away: 01',
      'tags: 00',
      'rights: 80000000',
      'tags: 01 00 01 ff',
      'unknown topic: 0003',
      'name: 02 7a',
      `id: ${'00'.repeat(16)}`,
      'not internal: 00',
      'no partitions: 01',
      'rights: 80000000',
      'tags: 00',
      'rights: 80000000',
      'tags: 00',
    );
    expect(decodeMetadataAnswer(answer)).toEqual([
      {
        topicErrorCode: 0,
        topic: 'ab',
        identity: id,
        partitionMetadata: [{ partitionErrorCode: 0, partitionId: 0, leader: 7 }],
      },
      { topicErrorCode: 3, topic: 'z', identity: undefined, partitionMetadata: [] },
    ]);
  });
});

import { describe } from 'vitest';
import { watchSuite } from '#test/http/watch/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { describeKafka } from '#test/support/kafka.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { kafkaVariables, noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('on workerd', () => {
  describeKafka('watch on workerd, log in Kafka', () => {
    const edge = useEdge(kafkaVariables);
    skipDifferences();
    watchSuite(edge);
  });
});

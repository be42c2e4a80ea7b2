import { describe } from 'vitest';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { describeKafka } from '#test/support/kafka.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { kafkaVariables, noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('on workerd', () => {
  describeKafka('watch groups on workerd, log in Kafka', () => {
    const edge = useEdge(kafkaVariables);
    skipDifferences();
    watchGroupsSuite(edge);
  });
});

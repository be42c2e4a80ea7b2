import { describe } from 'vitest';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { describeKafka } from '#test/support/kafka.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { kafkaVariables, noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('on workerd', () => {
  describeKafka('the resource API on workerd, log in Kafka', () => {
    const edge = useEdge(kafkaVariables);
    skipDifferences();
    resourceApiSuite(async () => (await edge()).targets.public);
  });
});

import { describe } from 'vitest';
import { watchSuite } from '#test/http/watch/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('watch on workerd', () => {
  const edge = useEdge();
  skipDifferences();
  watchSuite(edge);
});

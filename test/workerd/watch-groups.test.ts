import { describe } from 'vitest';
import { watchGroupsSuite } from '#test/http/watch-groups/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('watch groups on workerd', () => {
  const edge = useEdge();
  skipDifferences();
  watchGroupsSuite(edge);
});

import { describe } from 'vitest';
import { resourceApiSuite } from '#test/http/resource-api/suite.ts';
import { isEverywhere } from '#test/support/everywhere.ts';
import { skipDifferences } from '#test/workerd/differences.ts';
import { noWorkerd, useEdge } from '#test/workerd/edge.ts';

describe.skipIf(noWorkerd ?? !isEverywhere)('on workerd', () => {
  const edge = useEdge();
  skipDifferences();
  describe('the resource API for users', () => resourceApiSuite(async () => (await edge()).targets.public));
  describe('the resource API for controllers', () => resourceApiSuite(async () => (await edge()).targets.private));
});

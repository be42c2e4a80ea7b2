/** What is asked of a scenario, wherever it was played. */

import { expect } from 'vitest';
import type { ScenarioReport } from '#test/property/ordering/scenario.ts';

/** Of a scenario that runs to its end. */
export const CHANGES: number = Number(process.env['PLUMBLINE_TEST_CHANGES'] ?? 26_000);

/** All that was committed came once and in order, and it was as rough as it was meant to be. */
export function expectOrder({ violations, logViolations, ...report }: ScenarioReport, seed: number): void {
  expect(violations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}, ${violations.length} violations`).toEqual([]);
  expect(logViolations.slice(0, 10), `PLUMBLINE_TEST_SEED=${seed}`).toEqual([]);
  expect(report.changes).toBeGreaterThanOrEqual(CHANGES);
  expect(report.received).toBeGreaterThan(3 * CHANGES);
  expect(Math.min(report.chaos.killed, report.chaos.frozen, report.chaos.cut)).toBeGreaterThan(1);
}

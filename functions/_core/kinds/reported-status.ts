/** The status that controllers of the shipped kinds report. Fields of other controllers pass through it. */

import * as v from 'valibot';

import type { DocumentSchema } from '#core/kind.ts';

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message?: string | undefined;
  /** The generation that the controller saw. */
  readonly observedGeneration?: number | undefined;
  /** When `status` last changed, RFC 3339. */
  readonly lastTransitionTime?: string | undefined;
}

export interface ReportedStatus {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly Condition[] | undefined;
}

const generation = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

export const reportedStatus: DocumentSchema<ReportedStatus> = v.looseObject({
  observedGeneration: v.optional(generation),
  conditions: v.optional(
    v.array(
      v.looseObject({
        type: v.pipe(v.string(), v.minLength(1), v.maxLength(316)),
        status: v.picklist(['True', 'False', 'Unknown']),
        reason: v.pipe(v.string(), v.regex(/^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/)),
        message: v.optional(v.pipe(v.string(), v.maxLength(32768))),
        observedGeneration: v.optional(generation),
        lastTransitionTime: v.optional(v.pipe(v.string(), v.isoTimestamp())),
      }),
    ),
  ),
});

/** What the status of an object has to say when all is done. */

import { SUMMARIES } from '#test/fault/chaos/entry-kind.ts';

export interface LiveObject {
  readonly uid: string;
  readonly tenant: string;
  readonly kind: string;
  readonly name: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly spec: Readonly<Record<string, string | number | undefined>>;
  readonly status: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
    /** Of a database's owner. */
    readonly password?: string;
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

/** It is not on its way out, and ready at its generation. */
export function statusProblems({ tenant, kind, name, generation, isDeleting, status }: LiveObject): readonly string[] {
  const who = `${kind} ${tenant}/${name}`;
  const conditions = status.conditions ?? [];
  if (isDeleting) {
    const said = conditions.find(({ type }) => type === 'DeletionBlocked') ?? conditions[0];
    return [`${who} is still being deleted: ${said?.reason} ${said?.message}`];
  }
  const observed = status.observedGeneration;
  if (observed !== generation) return [`${who} has generation ${generation}, observed is ${observed}`];
  const summaries = kind === 'Entry' ? Object.values(SUMMARIES) : ['Ready'];
  return summaries.flatMap((summary) => {
    const found = conditions.find(({ type }) => type === summary);
    const isTrue = found?.status === 'True' && found.observedGeneration === generation;
    return isTrue ? [] : [`${who} is not ${summary}: ${found?.status} ${found?.reason} ${found?.message}`];
  });
}

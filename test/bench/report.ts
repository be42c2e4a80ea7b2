/** What a bench found: figures beside their goals. */

export interface Finding {
  readonly what: string;
  readonly figure: string;
  /** The comparison that decides, and the goal it is held to. */
  readonly ratio?: string;
  readonly goal: string;
  readonly met: boolean | undefined;
}

/** Prints findings as a table, in Markdown, so that it can be copied into the README. */
export function printFindings(findings: readonly Finding[]): void {
  process.stdout.write('| what | figure | ratio | goal | met |\n|---|---|---|---|---|\n');
  for (const { what, figure, ratio = '', goal, met } of findings) {
    const verdict = met === undefined ? '–' : met ? 'yes' : 'no';
    process.stdout.write(`| ${what} | ${figure} | ${ratio} | ${goal} | ${verdict} |\n`);
  }
}

/** The value below which this share of the sorted values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

export function rate(value: number): string {
  return value >= 10_000 ? `${Math.round(value / 1000)}k/s` : `${Math.round(value)}/s`;
}

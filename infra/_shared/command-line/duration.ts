/** Durations as people write them. */

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const DURATION = /^([1-9]\d{0,5})([smhd])$/;

export const DURATION_FORM = 'a number and s, m, h or d, such as 90s, 15m, 1h, 30d';

/** In seconds; undefined for what is none. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit] = DURATION.exec(text) ?? [];
  return number === undefined || unit === undefined ? undefined : Number(number) * (SECONDS[unit] ?? 1);
}

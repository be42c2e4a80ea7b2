/** Versions of kinds: `v1`, `v2beta1`, `v1alpha3`. */

const VERSION = /^v([1-9][0-9]{0,3})(?:(alpha|beta)([1-9][0-9]{0,3}))?$/;
const STAGES = ['alpha', 'beta', undefined];

export function isKindVersion(text: string): boolean {
  return VERSION.test(text);
}

/**
 * For sorting: the version that clients should prefer comes first. Stable before beta before alpha, then the larger.
 *
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
 */
export function byPriority(a: string, b: string): number {
  const [left, right] = [rankOf(a), rankOf(b)];
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

function rankOf(version: string): { readonly stage: number; readonly major: number; readonly minor: number } {
  const [, major = 0, stage, minor = 0] = VERSION.exec(version) ?? [];
  return { stage: STAGES.indexOf(stage), major: Number(major), minor: Number(minor) };
}

/**
 * Names from `metadata.generateName`: the prefix and a random suffix, by the rules of Kubernetes.
 *
 * @see https://github.com/kubernetes/apiserver/blob/master/pkg/storage/names/generate.go
 */

import { dnsSubdomainProblem } from '#core/names.ts';

export const SUFFIX_CHARACTERS: number = 5;
const MAX_NAME_CHARACTERS = 63;
/** Of suffixes. No vowels and no digits that look like letters: no word arises by chance. */
export const SUFFIX_ALPHABET: string = 'bcdfghjklmnpqrstvwxz2456789';

/** The prefix is cut so that prefix and suffix have 63 characters at most. */
export function generatedName(prefix: string, suffix: string): string {
  return prefix.slice(0, MAX_NAME_CHARACTERS - SUFFIX_CHARACTERS) + suffix;
}

/** What is wrong with a prefix; undefined when names can begin with it. */
export function namePrefixProblem(prefix: string): string | undefined {
  const problem = dnsSubdomainProblem(generatedName(prefix, SUFFIX_ALPHABET.slice(0, SUFFIX_CHARACTERS)));
  return problem === undefined ? undefined : `with a suffix it ${problem}`;
}

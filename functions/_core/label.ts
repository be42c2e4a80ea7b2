/**
 * What labels may look like. Keys: an optional DNS subdomain (253 characters at most) and `/`, then a name. Names and
 * values: 63 characters at most of letters, digits, `-`, `_` and `.`, a letter or digit at both ends; a value may be
 * empty.
 *
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
 */

import { isDnsSubdomain } from '#core/dns.ts';

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const NAME_RULE =
  'has 1 to 63 letters, digits, "-", "_" and ".", and begins and ends with a letter or digit, such as "app" or "my_name"';

/** What is wrong with a label's key, as a sentence about it; undefined when it is right. */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (prefix !== undefined && !isDnsSubdomain(prefix)) {
    return 'the part before "/" must be a DNS subdomain of at most 253 lower-case characters, such as "example.dev"';
  }
  if (!NAME.test(key.slice(slash + 1))) {
    return `a label key ${NAME_RULE}; before that it may have a DNS subdomain and "/"`;
  }
  return undefined;
}

/** What is wrong with a label's value, as a sentence about it; undefined when it is right. */
export function labelValueProblem(value: string): string | undefined {
  return value === '' || NAME.test(value) ? undefined : `a label value is empty, or ${NAME_RULE}`;
}

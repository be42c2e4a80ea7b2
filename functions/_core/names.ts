/**
 * The forms of names. Each check returns what is wrong, as a sentence about the name; undefined when it is right.
 *
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
 */

import { isDnsSubdomain } from '#core/dns.ts';
import { labelKeyProblem } from '#core/label.ts';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const RESOURCE_VERSION = /^[1-9][0-9]{0,18}$/;
const MAX_RESOURCE_VERSION = 2n ** 63n - 1n;

/** A tenant's name, and the plural of a kind. */
export function dnsLabelProblem(name: string): string | undefined {
  if (DNS_LABEL.test(name)) return undefined;
  return 'must have 1 to 63 lower-case letters, digits and "-", and begin and end with a letter or digit';
}

/** An object's name, and the group of a kind. */
export function dnsSubdomainProblem(name: string): string | undefined {
  if (isDnsSubdomain(name)) return undefined;
  return (
    'must be a DNS subdomain: 1 to 253 lower-case letters, digits, "-" and ".", ' +
    'where each part between dots begins and ends with a letter or digit'
  );
}

/** A key of annotations, and a finalizer: the form of a label's key. */
export function qualifiedNameProblem(name: string): string | undefined {
  return labelKeyProblem(name)?.replace('a label key', 'the name');
}

/** A finalizer that a kind puts on: its domain says which controller takes it off. */
export function domainQualifiedNameProblem(name: string): string | undefined {
  return name.includes('/') ? qualifiedNameProblem(name) : 'must have a domain, such as "example.dev/cleanup"';
}

/** Whether a text can be a resourceVersion: a decimal without leading zero that the store can hold. */
export function isResourceVersion(text: string): boolean {
  return RESOURCE_VERSION.test(text) && BigInt(text) <= MAX_RESOURCE_VERSION;
}

/** Whether any object can have this name: the store's rule, which is wider than the one for new names. */
export function canBeName(text: string): boolean {
  return /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text);
}

/** DNS names, the part of them that Kubernetes' names, groups and label prefixes are made of. */

const MAX_SUBDOMAIN_LENGTH = 253;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** Lower-case labels with dots between them, 253 characters at most. @see RFC 1123 section 2.1 */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= MAX_SUBDOMAIN_LENGTH && SUBDOMAIN.test(text);
}

/**
 * What databases and roles are called on their servers. Tenants, objects and subjects have no "_" in their names, so no
 * two of them ever come to one name; one that was cut, or that PostgreSQL or Plumbline would have for itself, has "__".
 */

/** PostgreSQL's limit, in bytes; the names are ASCII. */
const MAX_LENGTH = 63;
const HASH_DIGITS = 8;
const RESERVED = /^(pg|plumbline)_/;

export function databaseName(tenant: string, name: string): string {
  return fit(`${tenant}_${name}`, '');
}

/** Of the role that owns a database. Never that of a subject. */
export function ownerRoleName(tenant: string, owner: string): string {
  return fit(`${tenant}_${owner}`, '_owner');
}

export function subjectRoleName(tenant: string, subject: string): string {
  return fit(`${tenant}_${subject}`, '');
}

/** Of a database that is being made for this object. */
export function draftName(uid: string): string {
  return `plumbline_${uid}`;
}

function fit(base: string, suffix: string): string {
  const free = RESERVED.test(base) ? `t__${base}` : base;
  if (free.length + suffix.length <= MAX_LENGTH) return free + suffix;
  const kept = free.slice(0, MAX_LENGTH - suffix.length - HASH_DIGITS - 2);
  return `${kept}__${hash(free)}${suffix}`;
}

/** FNV-1a, 32 bits, in hexadecimal. It need not withstand anybody: markers tell whose a name is. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (const character of text) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return value.toString(16).padStart(HASH_DIGITS, '0');
}

/**
 * Continue tokens: where the next page of a list begins. Clients hold them as opaque text. A token continues only the
 * list that it came from: the same caller's view, the same kind, the same selectors.
 */

import * as v from 'valibot';

import { type Audience, canonicalTenants, type TenantSet } from '#core/identity.ts';
import type { SecretBox } from '#core/ports/secret-box.ts';
import { StatusError } from '#core/status-error.ts';

/** What the next page needs to know. */
export interface ContinueState {
  /** The next page begins after this object, in the order (tenant, name); of Kubernetes Events, behind that name `at` a time. */
  readonly after: { readonly tenant: string; readonly name: string; readonly at?: string };
  /** The first page's cursor, which every page repeats. Absent when the first page had none. */
  readonly cursor?: string;
  /** How many objects followed when the first page was read, less those shown since. Absent where it is not known. */
  readonly remaining?: number;
}

/** The list that a token belongs to. Texts of selectors are compared as they were sent. */
export interface ListIdentity {
  readonly audience: Audience;
  readonly tenants: TenantSet;
  readonly group: string;
  readonly kind: string;
  /** The tenant in the path, when it names one. */
  readonly tenant?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Above the largest token that `seal` makes: a full cursor, and the longest names. */
const MAX_CONTINUE_CHARACTERS = 8192;
const FORMAT_VERSION = 1;

const stateSchema = v.strictObject({
  after: v.strictObject({ tenant: v.string(), name: v.string(), at: v.exactOptional(v.string()) }),
  cursor: v.exactOptional(v.string()),
  remaining: v.exactOptional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
});

/** The binding of a list's tokens: equal for the same list, whatever the order of its tenants. */
export function continueBinding(list: ListIdentity): string {
  const { audience, group, kind, tenant = null, labelSelector = '', fieldSelector = '' } = list;
  return JSON.stringify([audience, canonicalTenants(list.tenants), group, kind, tenant, labelSelector, fieldSelector]);
}

export interface ContinueTokens {
  seal(state: ContinueState, binding: string): string;

  /**
   * @throws {StatusError} BadRequest for anything that was not sealed with this binding; Expired when its key was
   * retired: clients then list again from the start, as Kubernetes clients do.
   */
  open(token: string, binding: string): ContinueState;
}

export function createContinueTokens(box: SecretBox): ContinueTokens {
  return { seal, open };

  function seal({ after, cursor, remaining }: ContinueState, binding: string): string {
    const state: ContinueState = {
      after: { tenant: after.tenant, name: after.name, ...(after.at !== undefined && { at: after.at }) },
      ...(cursor !== undefined && { cursor }),
      ...(remaining !== undefined && { remaining }),
    };
    return box.seal(asciiBytes(JSON.stringify(state)), associatedData(binding));
  }

  function open(token: string, binding: string): ContinueState {
    if (token.length > MAX_CONTINUE_CHARACTERS) throw malformed();
    const opened = box.open(token, associatedData(binding));
    if (opened === 'malformed') throw malformed();
    if (opened === 'retired') throw retired();
    return v.parse(stateSchema, JSON.parse(asciiText(opened)));
  }
}

function associatedData(binding: string): string {
  return `plumbline/continue/${FORMAT_VERSION}/${binding}`;
}

/** JSON text as bytes: what is not ASCII is escaped, so one byte is one character. */
function asciiBytes(json: string): Uint8Array {
  const ascii = json.replaceAll(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return Uint8Array.from(ascii, (character) => character.charCodeAt(0));
}

function asciiText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

function malformed(): StatusError {
  return new StatusError(
    'BadRequest',
    'continue is malformed or belongs to another list: it only continues the list that gave it, with the same path, ' +
      'tenants and selectors; leave it out to list from the start',
  );
}

function retired(): StatusError {
  return new StatusError(
    'Expired',
    'the key of this continue token was retired: list from the start, without continue',
  );
}

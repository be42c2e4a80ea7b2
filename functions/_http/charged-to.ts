/** Whom use is counted for. */

import { isOpenSet, seesTenant, type Caller, type TenantSet } from '#core/identity.ts';

/** A tenant, or a caller: who is of many tenants, or asks for what is not his own, must not use up what a tenant has. */
export type Payer = { readonly tenant: string } | { readonly subject: string };

/** Of a request for something in this tenant, or in none. */
export function payerOf(caller: Caller, tenant: string | undefined): Payer {
  const { tenants, subject } = caller;
  if (tenant !== undefined) return seesTenant(caller, tenant) ? { tenant } : { subject };
  const [only, ...others] = isOpenSet(tenants) ? [] : tenants;
  return only !== undefined && others.length === 0 ? { tenant: only } : { subject };
}

const IN_NAMESPACE = /\/namespaces\/([a-z0-9-]{1,63})(?:\/|$)/;

/** Of a request to this path of the API. */
export function payerAt(caller: Caller, path: string): Payer {
  return payerOf(caller, IN_NAMESPACE.exec(path)?.[1]);
}

/** Of a watch over these tenants: each of them that was named. */
export function payersOf(subject: string, tenants: TenantSet, shared: string): readonly Payer[] {
  const named = isOpenSet(tenants) ? [] : tenants.filter((tenant) => tenant !== shared);
  return named.length > 0 ? named.map((tenant) => ({ tenant })) : [{ subject }];
}

export function keyOf(payer: Payer): string {
  return 'tenant' in payer ? `tenant/${payer.tenant}` : `subject/${payer.subject}`;
}

export function nameOf(payer: Payer): string {
  return 'tenant' in payer ? `tenant "${payer.tenant}"` : `subject ${JSON.stringify(payer.subject)}`;
}

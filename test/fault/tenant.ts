/** What fault tests begin with: a tenant in a deployment, and a token for it. */

import { clientOf } from '#test/http/client.ts';
import { TENANTS, uniqueName } from '#test/http/resource-api/world.ts';
import type { Target } from '#test/http/target.ts';

export interface FaultTenant {
  readonly tenant: string;
  /** Of an admin of all tenants; good for the test's time. */
  readonly token: string;
}

export async function makeTenant(target: Target): Promise<FaultTenant> {
  const tenant = uniqueName('t');
  const grant = { roles: ['admin'], tenants: '*' } as const;
  const { status, text } = await (await clientOf(target, grant)).post(TENANTS, { metadata: { name: tenant } });
  if (status !== 201) throw new Error(`the tenant was not made: ${status} ${text}`);
  return { tenant, token: await target.token({ ...grant, ttlSeconds: 3600 }) };
}

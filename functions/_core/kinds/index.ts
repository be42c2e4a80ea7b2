/** The kinds that every installation serves. */

import type { Kind } from '#core/kind.ts';
import { managedDatabaseKind } from '#core/kinds/managed-database.ts';
import { roleBindingKind } from '#core/kinds/role-binding.ts';
import { tenantKind } from '#core/kinds/tenant.ts';

export const SHIPPED_KINDS: readonly Kind[] = [tenantKind, managedDatabaseKind, roleBindingKind];

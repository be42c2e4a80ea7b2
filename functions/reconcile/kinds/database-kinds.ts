/** The kinds that work on database servers, with their controllers. */

import type { Kind } from '#core/kind.ts';
import { type DatabaseKindDeps, managedDatabase } from '#functions/reconcile/kinds/managed-database.ts';
import { roleBinding } from '#functions/reconcile/kinds/role-binding.ts';

export function databaseKinds(deps: DatabaseKindDeps): readonly Kind[] {
  return [managedDatabase(deps), roleBinding(deps)];
}

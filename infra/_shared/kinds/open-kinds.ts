/** The kinds of a process, shipped and its own, which the installation knows. */

import type { KindRegistry } from '#core/kind-registry.ts';
import type { Installation } from '#infra/_shared/database/installation.ts';
import { loadKinds } from '#infra/_shared/kinds/kinds.ts';
import { shippedKinds, type ShippedKindsOptions } from '#infra/_shared/kinds/shipped-kinds.ts';

/** @throws {StartError} when those of KINDS cannot be loaded, or do not fit to what the installation has. */
export async function openKinds(options: ShippedKindsOptions, installation: Installation): Promise<KindRegistry> {
  const kinds = await loadKinds(shippedKinds(options), options.config.kindsModule);
  await installation.haveKinds(kinds);
  return kinds;
}

/** What bears the marker of a kind, server by server: its orphans are found among them. */

import type { DatabaseServers } from '#core/ports/database-servers.ts';
import type { KindName } from '#core/reconcile/controller.ts';
import { markerText, readMarker } from '#core/reconcile/marker.ts';
import type { ExternalObject, OrphanSweep, SweepContext } from '#core/reconcile/sweep.ts';
import { externalId } from '#functions/reconcile/kinds/database-place.ts';

/** @param kind as it stands in the markers. @param classes that are swept. */
export function markedObjects(
  servers: DatabaseServers,
  kind: KindName,
  classes: readonly ('database' | 'role')[],
): OrphanSweep {
  return {
    parts: servers.names,

    async list(ctx, name) {
      const prefix = prefixOf(ctx, kind);
      const marked = await withSweep(servers, name, `sweep ${name}`, ctx, (server) => server.listMarked(prefix));
      return marked.flatMap((object): readonly ExternalObject[] => {
        const ownerUid = readMarker(object.comment)?.uid;
        if (ownerUid === undefined || !classes.includes(object.class)) return [];
        return [{ class: object.class, id: externalId(name, object.name), ownerUid }];
      });
    },

    async remove({ class: objectClass, id, ownerUid }, ctx) {
      const slash = id.indexOf('/');
      const [name, external] = [id.slice(0, slash), id.slice(slash + 1)];
      const comment = prefixOf(ctx, kind) + ownerUid;
      await withSweep(servers, name, ownerUid, ctx, async (server) => {
        if (objectClass === 'database') await server.databases.drop(external, comment, { force: false });
        else await server.roles.drop(external, comment);
      });
      ctx.log.info({ class: objectClass, id, ownerUid }, 'an orphan was removed');
    },
  };
}

function prefixOf({ installation }: SweepContext, { group, kind }: KindName): string {
  return markerText({ installation, kind: `${group}/${kind}`, uid: '' });
}

async function withSweep<T>(
  servers: DatabaseServers,
  name: string,
  subject: string,
  { signal }: SweepContext,
  use: (server: ReturnType<DatabaseServers['open']>) => Promise<T>,
): Promise<T> {
  const server = servers.open(name, { uid: subject, fencingToken: 0n, signal });
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}

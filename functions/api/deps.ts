/** What the resource API needs. */

import type { MiddlewareHandler } from 'hono';

import type { HttpDeps, HttpEnv } from '#http/app.ts';
import type { ContinueTokens } from '#core/continue-token.ts';
import type { Cursors } from '#core/cursor.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { ForcedDeletions } from '#core/ports/forced-deletions.ts';
import type { ObjectEvents } from '#core/ports/object-events.ts';
import type { ResourceStore } from '#core/ports/resources.ts';

export interface ApiDeps extends HttpDeps {
  readonly store: ResourceStore;
  readonly events: ObjectEvents;
  readonly forcedDeletions: ForcedDeletions;
  readonly kinds: KindRegistry;
  readonly cursors: Cursors;
  readonly continueTokens: ContinueTokens;
  /** Sets the caller; see `#http/authenticate.ts`. */
  readonly authenticate: MiddlewareHandler<HttpEnv>;
  /** Shown at `/`. */
  readonly version: string;
  /** Ends names that are made of `generateName`. @default five random letters */
  readonly nameSuffix?: () => string;
}

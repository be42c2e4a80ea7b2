/** The OpenAPI documents of an installation: one per group and version, and the index that leads to them. */

import { kindPaths } from '#functions/api/openapi/kind-paths.ts';
import { addKindSchemas } from '#functions/api/openapi/kind-schemas.ts';
import { metaSchemas } from '#functions/api/openapi/meta-schemas.ts';
import type { Components } from '#functions/api/openapi/schema-object.ts';
import type { KindRegistry } from '#core/kind-registry.ts';
import type { Kind } from '#core/kind.ts';

/** A text that never changes while the program runs. */
export interface Document {
  readonly text: string;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly hash: string;
}

export interface OpenApiDocuments {
  readonly index: Document;
  /** By `group/version`. */
  readonly byGroupVersion: ReadonlyMap<string, Document>;
}

export const OPENAPI_ROOT = '/openapi/v3';

/** Made from the kinds alone: nothing in them depends on who asks, nor on what is stored. */
export async function openApiDocuments(kinds: KindRegistry, version: string): Promise<OpenApiDocuments> {
  const groups = Map.groupBy(kinds.all, (kind) => `${kind.group}/${kind.version}`);
  const byGroupVersion = new Map<string, Document>();
  for (const [groupVersion, members] of groups) {
    byGroupVersion.set(groupVersion, await documentOf(openApi(groupVersion, members, version)));
  }
  // The index changes with every document, so that a client that kept one knows.
  const paths = Object.fromEntries(
    [...byGroupVersion].map(([groupVersion, { hash }]) => [
      `apis/${groupVersion}`,
      { serverRelativeURL: `${OPENAPI_ROOT}/apis/${groupVersion}?hash=${hash}` },
    ]),
  );
  return { index: await documentOf({ paths }), byGroupVersion };
}

function openApi(groupVersion: string, kinds: readonly Kind[], version: string): object {
  const schemas: Components = structuredClone(metaSchemas);
  for (const kind of kinds) addKindSchemas(kind, schemas);
  return {
    openapi: '3.0.0',
    info: { title: groupVersion, version },
    security: [{ BearerToken: [] }],
    paths: Object.fromEntries(kinds.flatMap((kind) => Object.entries(kindPaths(kind)))),
    components: {
      schemas,
      securitySchemes: { BearerToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

async function documentOf(content: object): Promise<Document> {
  const text = `${JSON.stringify(content)}\n`;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return { text, hash: Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('') };
}

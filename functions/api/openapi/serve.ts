/** GET of `/openapi/v3` and of the documents that it leads to, as Kubernetes serves them. */

import type { ApiDeps } from '#functions/api/deps.ts';
import {
  OPENAPI_ROOT,
  openApiDocuments,
  type Document,
  type OpenApiDocuments,
} from '#functions/api/openapi/documents.ts';
import { noSuchPath } from '#functions/api/target.ts';
import { answerTagged, ASK_AGAIN } from '#http/conditional.ts';
import type { MethodHandler } from '#http/methods.ts';

/** The address that names the content is good for a year; any other has to ask whether it is still the same. */
const FOR_EVER = 'private, immutable, max-age=31536000';

export interface OpenApiHandlers {
  readonly index: MethodHandler;
  readonly document: MethodHandler;
}

/** The documents are made when the first client asks. */
export function serveOpenApi({ kinds, version }: ApiDeps): OpenApiHandlers {
  let making: Promise<OpenApiDocuments> | undefined;
  const documents = (): Promise<OpenApiDocuments> => (making ??= openApiDocuments(kinds, version));

  return {
    index: async (c) => answer(c, (await documents()).index, ASK_AGAIN),
    document: async (c) => {
      const { group = '', version: groupVersion = '' } = c.req.param();
      const document = (await documents()).byGroupVersion.get(`${group}/${groupVersion}`);
      if (!document) throw noSuchPath(c, `GET ${OPENAPI_ROOT} lists the documents`);
      return answer(c, document, c.req.query('hash') === document.hash ? FOR_EVER : ASK_AGAIN);
    },
  };

  function answer(c: Parameters<MethodHandler>[0], { text, hash }: Document, caching: string): Response {
    return answerTagged(c, text, hash, caching);
  }
}

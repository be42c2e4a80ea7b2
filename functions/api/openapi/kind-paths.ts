/** The paths of one kind, with every verb that they have. */

import { componentOf, gvkOf } from '#functions/api/openapi/kind-schemas.ts';
import { META_SCHEMAS } from '#functions/api/openapi/meta-schemas.ts';
import {
  CHANGE_PARAMETERS,
  DELETE_PARAMETERS,
  LIST_PARAMETERS,
  pathParameter,
  STATUS_PARAMETERS,
  WRITE_PARAMETERS,
  type ParameterObject,
} from '#functions/api/openapi/parameters.ts';
import { refTo, type SchemaObject } from '#functions/api/openapi/schema-object.ts';
import type { Kind } from '#core/kind.ts';

const OK = 'OK.';
const JSON_TYPE = 'application/json';
const PATCH_TYPES = ['application/merge-patch+json', 'application/json-patch+json'];

/** What a verb does: in the path's `operationId`, and in `x-kubernetes-action`. */
interface Verb {
  readonly action: string;
  readonly id: string;
  readonly description: string;
  readonly parameters?: readonly ParameterObject[];
  readonly body?: { readonly types: readonly string[]; readonly schema: SchemaObject; readonly required: boolean };
  /** @default 200 alone */
  readonly codes?: Readonly<Record<string, string>>;
  readonly answer: SchemaObject;
}

export function kindPaths(kind: Kind): Record<string, object> {
  const component = componentOf(kind);
  const object = refTo(component);
  const list: SchemaObject = refTo(`${component}List`);
  const root = `/apis/${kind.group}/${kind.version}`;
  const isNamespaced = kind.scope === 'Namespaced';
  const base = isNamespaced ? `${root}/namespaces/{namespace}/${kind.plural}` : `${root}/${kind.plural}`;
  const scope = isNamespaced ? 'Namespaced' : '';
  const namespace = isNamespaced ? [pathParameter('namespace', 'The tenant.')] : [];
  const name = [...namespace, pathParameter('name', `Of the ${kind.kind}.`)];
  const sent = { types: [JSON_TYPE], schema: object, required: true };
  const patched = { types: PATCH_TYPES, schema: refTo(META_SCHEMAS.patch), required: true };
  const options = { types: [JSON_TYPE], schema: refTo(META_SCHEMAS.deleteOptions), required: false };

  const lists = (id: string): object =>
    operation({ action: 'list', id, description: `Lists ${kind.plural}.`, parameters: LIST_PARAMETERS, answer: list });
  const writes = (what: string, suffix: string, parameters = CHANGE_PARAMETERS): object => ({
    get: operation({
      action: 'get',
      id: `read${scope}${kind.kind}${suffix}`,
      description: `Reads ${what}.`,
      answer: object,
    }),
    put: operation({
      action: 'put',
      id: `replace${scope}${kind.kind}${suffix}`,
      description: `Replaces ${what}; the object must still be at its metadata.resourceVersion, or at If-Match.`,
      parameters,
      body: sent,
      answer: object,
    }),
    patch: operation({
      action: 'patch',
      id: `patch${scope}${kind.kind}${suffix}`,
      description: `Changes parts of ${what}.`,
      parameters,
      body: patched,
      answer: object,
    }),
  });

  return {
    ...(isNamespaced && { [`${root}/${kind.plural}`]: { get: lists(`list${kind.kind}ForAllNamespaces`) } }),
    [base]: {
      ...(namespace.length > 0 && { parameters: namespace }),
      get: lists(`list${scope}${kind.kind}`),
      post: operation({
        action: 'post',
        id: `create${scope}${kind.kind}`,
        description: `Creates a ${kind.kind}.`,
        parameters: WRITE_PARAMETERS,
        body: sent,
        codes: { 201: 'Created.' },
        answer: object,
      }),
    },
    [`${base}/{name}`]: {
      parameters: name,
      ...writes(`a ${kind.kind}`, ''),
      delete: operation({
        action: 'delete',
        id: `delete${scope}${kind.kind}`,
        description: `Deletes a ${kind.kind}, once its finalizers are gone.`,
        parameters: DELETE_PARAMETERS,
        body: options,
        codes: { 200: OK, 202: 'Its deletion is requested; finalizers hold it.' },
        answer: object,
      }),
    },
    [`${base}/{name}/status`]: {
      parameters: name,
      ...writes(`the status of a ${kind.kind}`, 'Status', STATUS_PARAMETERS),
    },
  };

  function operation({ action, id, description, parameters, body, codes = { 200: OK }, answer }: Verb): object {
    return {
      operationId: id,
      description,
      tags: [kind.kind],
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': gvkOf(kind),
      ...(parameters && { parameters }),
      ...(body && { requestBody: { required: body.required, content: contentOf(body.types, body.schema) } }),
      responses: {
        ...Object.fromEntries(
          Object.entries(codes).map(([code, text]) => [
            code,
            { description: text, content: contentOf([JSON_TYPE], answer) },
          ]),
        ),
        default: { description: 'What went wrong.', content: contentOf([JSON_TYPE], refTo(META_SCHEMAS.status)) },
      },
    };
  }
}

function contentOf(types: readonly string[], schema: SchemaObject): Record<string, { readonly schema: SchemaObject }> {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

/** Schema objects of OpenAPI 3.0, as far as documents here are made of them. */

/** @see https://spec.openapis.org/oas/v3.0.3#schema-object */
export interface SchemaObject {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  example?: unknown;
  examples?: unknown;
  maximum?: number;
  writeOnly?: boolean;
  required?: string[];
  properties?: Record<string, SchemaObject>;
  additionalProperties?: SchemaObject | boolean;
  items?: SchemaObject;
  allOf?: SchemaObject[];
  anyOf?: SchemaObject[];
  oneOf?: SchemaObject[];
  not?: SchemaObject;
  'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-validations'?: readonly { readonly rule: string; readonly message: string }[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Of a document: schemas by the name that a `$ref` gives them. */
export type Components = Record<string, SchemaObject>;

const COMPONENTS = '#/components/schemas/';

export function refTo(name: string): SchemaObject {
  return { $ref: COMPONENTS + name };
}

/** The schema that a `$ref` of these components leads to; a schema without one is its own. */
export function resolved(schema: SchemaObject, components: Components): SchemaObject | undefined {
  if (schema.$ref === undefined) return schema;
  return components[schema.$ref.slice(COMPONENTS.length)];
}

/** The schemas of which an instance must meet all, or one. */
export function alternatives({ allOf = [], anyOf = [], oneOf = [] }: SchemaObject): SchemaObject[] {
  return [...allOf, ...anyOf, ...oneOf];
}

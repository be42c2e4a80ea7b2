/** The parameters of the resource API, as documents show them. */

import { DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT } from '#functions/api/parameters.ts';
import type { SchemaObject } from '#functions/api/openapi/schema-object.ts';

export interface ParameterObject {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly description: string;
  readonly required?: true;
  readonly schema: SchemaObject;
}

const text: SchemaObject = { type: 'string' };

function query(name: string, description: string, schema: SchemaObject = text): ParameterObject {
  return { name, in: 'query', description, schema };
}

export function pathParameter(name: string, description: string): ParameterObject {
  return { name, in: 'path', description, required: true, schema: text };
}

export const LIST_PARAMETERS: readonly ParameterObject[] = [
  query('limit', `How many objects at most: ${DEFAULT_LIST_LIMIT} when absent or 0, never above ${MAX_LIST_LIMIT}.`, {
    type: 'integer',
  }),
  query('continue', 'From the page before: the next one.'),
  query('labelSelector', 'Such as "app=blue,tier in (a,b),!old".'),
  query('fieldSelector', 'On metadata.name and metadata.namespace, with "=" and "!=".'),
  query('resourceVersion', 'The list is no older than this.'),
  query('resourceVersionMatch', 'What resourceVersion means.', { type: 'string', enum: ['NotOlderThan', 'Exact'] }),
];

const dryRun = query('dryRun', '"All": everything is checked and answered, nothing is written.', {
  type: 'string',
  enum: ['All'],
});

const ifMatch: ParameterObject = {
  name: 'If-Match',
  in: 'header',
  description: 'The ETag that was read: the object must still be at this resourceVersion; otherwise the answer is 409.',
  schema: text,
};

/** kubectl leaves the validation to a server whose PATCH has `fieldValidation`, and refuses to write to any other. */
export const WRITE_PARAMETERS: readonly ParameterObject[] = [
  dryRun,
  query('fieldManager', 'Who writes. Ignored, but for reports to /status of controllers elsewhere.'),
  query('fieldValidation', 'What becomes of unknown and duplicate fields.', {
    type: 'string',
    enum: ['Ignore', 'Warn', 'Strict'],
  }),
];

/** Of a report of a controller. */
const fencingToken = query(
  'fencingToken',
  'Of the lease of the controller elsewhere that fieldManager names: from 1 on, higher for each new holder.',
);

/** Of a write to an object that is there. */
export const CHANGE_PARAMETERS: readonly ParameterObject[] = [...WRITE_PARAMETERS, ifMatch];

export const STATUS_PARAMETERS: readonly ParameterObject[] = [...CHANGE_PARAMETERS, fencingToken];

export const DELETE_PARAMETERS: readonly ParameterObject[] = [
  dryRun,
  ifMatch,
  query('propagationPolicy', 'What becomes of the objects that this one owns.', {
    type: 'string',
    enum: ['Background', 'Foreground', 'Orphan'],
  }),
];

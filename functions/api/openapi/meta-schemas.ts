/**
 * The schemas that every kind shares, under the names that Kubernetes gives them.
 *
 * @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go
 */

import { refTo, type Components, type SchemaObject } from '#functions/api/openapi/schema-object.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

type MetaSchema = 'objectMeta' | 'ownerReference' | 'listMeta' | 'status' | 'deleteOptions' | 'patch';

export const META_SCHEMAS: Readonly<Record<MetaSchema, string>> = {
  objectMeta: `${META}.ObjectMeta`,
  ownerReference: `${META}.OwnerReference`,
  listMeta: `${META}.ListMeta`,
  status: `${META}.Status`,
  deleteOptions: `${META}.DeleteOptions`,
  patch: `${META}.Patch`,
};

const versionAndKind = {
  apiVersion: text('The group and version, such as "example.dev/v1".'),
  kind: text('What this is, in PascalCase.'),
};

const preconditions: SchemaObject = {
  type: 'object',
  description: 'What must still hold of the object; otherwise the answer is 409.',
  properties: { uid: text('Of the object.'), resourceVersion: text('Of the object.') },
};

/** What a system field has in a request is a condition, or nothing. */
export const metaSchemas: Components = {
  [META_SCHEMAS.objectMeta]: {
    type: 'object',
    properties: {
      name: text('A DNS subdomain, unique among the objects of its kind and namespace. Cannot change.'),
      generateName: text('Asks the server for a name that begins so.'),
      namespace: text('The tenant that owns the object. Absent from cluster-scoped ones.'),
      uid: text('Made by the server, never used twice. In a write: the object must still be this one.'),
      resourceVersion: text('A decimal, new on every change. In a write: the object must still be at this one.'),
      generation: integer('Counts changes of the spec, and the deletion request.'),
      creationTimestamp: time('Made by the server.'),
      deletionTimestamp: time('When the deletion was requested; set by the server.'),
      deletionGracePeriodSeconds: integer('0 once the deletion was requested.'),
      labels: texts('What selectors select by.'),
      annotations: texts('What tools and people note.'),
      finalizers: {
        type: 'array',
        items: { type: 'string' },
        description: 'Who has something to do before a deleted object may go.',
      },
      ownerReferences: {
        type: 'array',
        items: refTo(META_SCHEMAS.ownerReference),
        description: 'Objects of the same namespace that this one belongs to. One at most is the controller.',
      },
    },
  },
  [META_SCHEMAS.ownerReference]: {
    type: 'object',
    required: ['apiVersion', 'kind', 'name', 'uid'],
    properties: {
      ...versionAndKind,
      name: text('Of the owner.'),
      uid: text('Of the owner.'),
      controller: flag('Whether the owner manages this object.'),
      blockOwnerDeletion: flag('Whether the owner waits for this object when it is deleted in the foreground.'),
    },
  },
  [META_SCHEMAS.listMeta]: {
    type: 'object',
    properties: {
      continue: text('More objects follow: give this back as the query parameter "continue".'),
      remainingItemCount: integer('How many objects follow, when that is known.'),
      cursor: text('Where a watch of /watch/v1/events takes over from this list.'),
    },
  },
  [META_SCHEMAS.status]: {
    type: 'object',
    properties: {
      ...versionAndKind,
      metadata: refTo(META_SCHEMAS.listMeta),
      status: { type: 'string', enum: ['Success', 'Failure'] },
      message: text('For people.'),
      reason: text('For programs, in PascalCase.'),
      code: { type: 'integer', format: 'int32', description: 'The HTTP code.' },
      details: {
        type: 'object',
        properties: {
          name: text('Of the object.'),
          group: text('Of the kind.'),
          kind: text('The plural of the kind.'),
          uid: text('Of the object.'),
          retryAfterSeconds: { type: 'integer', format: 'int32', description: 'When to try again.' },
          causes: {
            type: 'array',
            items: {
              type: 'object',
              properties: { reason: text('In PascalCase.'), message: text('For people.'), field: text('Its path.') },
            },
          },
        },
      },
    },
    'x-kubernetes-group-version-kind': [{ group: '', kind: 'Status', version: 'v1' }],
  },
  [META_SCHEMAS.deleteOptions]: {
    type: 'object',
    properties: {
      ...versionAndKind,
      preconditions,
      propagationPolicy: { type: 'string', enum: ['Background', 'Foreground', 'Orphan'] },
      gracePeriodSeconds: integer('Ignored.'),
      orphanDependents: flag('Older than propagationPolicy.'),
      dryRun: { type: 'array', items: { type: 'string' } },
    },
  },
  [META_SCHEMAS.patch]: { description: 'A merge patch (RFC 7396), or the operations of a JSON patch (RFC 6902).' },
};

function text(description: string): SchemaObject {
  return { type: 'string', description };
}

function time(description: string): SchemaObject {
  return { type: 'string', format: 'date-time', description };
}

function flag(description: string): SchemaObject {
  return { type: 'boolean', description };
}

function integer(description: string): SchemaObject {
  return { type: 'integer', format: 'int64', description };
}

function texts(description: string): SchemaObject {
  return { type: 'object', additionalProperties: { type: 'string' }, description };
}

/** The package's door for teams: declare kinds, and the types to write code against them. */

export { defineKind, type DocumentSchema, type Kind, type KindDefinition } from '#core/kind.ts';
export type { OwnerReference, ResourceMetadata, ResourceObject } from '#core/resource.ts';

/** The package's door for teams: declare kinds with their controllers, and the types to write code against them. */

export { defineKind, type DocumentSchema, type Kind, type KindDefinition } from '#core/kind.ts';
export {
  type Children,
  OwnershipConflict,
  type PassContext,
  type PassObject,
  type WatchContext,
} from '#core/reconcile/context.ts';
export type { ControllerDefinition, WatchDefinition, WatchTarget } from '#core/reconcile/controller.ts';
export { type Marker, markerText, type Ownership, ownershipOf } from '#core/reconcile/marker.ts';
export { ABSENT, known, type Observation, ObservationFailed, observe } from '#core/reconcile/observation.ts';
export { type FinalizeResult, type ReconcileResult, TerminalError } from '#core/reconcile/outcome.ts';
export type { ExternalObject, OrphanSweep, SweepContext } from '#core/reconcile/sweep.ts';
export type { OwnerReference, ResourceMetadata, ResourceObject } from '#core/resource.ts';

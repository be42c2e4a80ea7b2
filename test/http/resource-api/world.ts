/** What each part of the suite starts from: a tenant of its own, and callers with their roles. */

import { beforeAll, expect } from 'vitest';

import { clientOf, type Answer, type Client } from '#test/http/client.ts';
import type { OpenTarget, Target } from '#test/http/target.ts';

export interface World {
  readonly target: Target;
  /** All tenants. */
  readonly admin: Client;
  /** The rest: this tenant alone. */
  readonly editor: Client;
  readonly viewer: Client;
  readonly controller: Client;
  readonly tenant: string;
  /** The path of the tenant's widgets, and of one. */
  readonly widgets: string;
  widget(name: string): string;
}

export const TENANTS = '/apis/plumbline.dev/v1/tenants';

/** Filled before the tests of the surrounding `describe` run. */
export function useWorld(open: OpenTarget): World {
  const world = {} as World;
  beforeAll(async () => {
    Object.assign(world, await makeWorld(await open()));
  });
  return world;
}

export async function makeWorld(target: Target): Promise<World> {
  const tenant = uniqueName('t');
  const admin = await clientOf(target, { roles: ['admin'], tenants: '*' });
  expect((await admin.post(TENANTS, { metadata: { name: tenant } })).status).toBe(201);
  const [editor, viewer, controller] = await Promise.all(
    (['editor', 'viewer', 'controller'] as const).map((role) => clientOf(target, { roles: [role], tenants: [tenant] })),
  );
  if (!editor || !viewer || !controller) throw new Error('no clients');
  const widgets = `/apis/example.dev/v1/namespaces/${tenant}/widgets`;
  return { target, admin, editor, viewer, controller, tenant, widgets, widget: (name) => `${widgets}/${name}` };
}

/** Deletes a tenant without objects, and waits until its name can be used again: its controller has its stream removed. */
export async function removeTenant(world: World, name: string): Promise<void> {
  await requestDeletion(world, name);
  await expect.poll(async () => (await world.admin.get(`${TENANTS}/${name}`)).status, { timeout: 30_000 }).toBe(404);
}

/** Asks for a tenant's deletion, which is done later. */
export async function requestDeletion(world: World, name: string): Promise<void> {
  const answer = await world.admin.delete(`${TENANTS}/${name}`);
  expect(answer.status, answer.text).toBe(202);
}

/** Suites run side by side, and against deployments that were tested before. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${crypto.randomUUID().slice(0, 13)}`;
}

/** Creates a widget and gives it as the API answered. */
// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not typed
export async function createWidget(world: World, metadata: object = {}, spec: object = {}): Promise<any> {
  const answer = await world.editor.post(world.widgets, { metadata: { name: uniqueName('w'), ...metadata }, spec });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

/** Asserts an error: its code, its reason, and that it is a `Status` through and through. */
export function expectStatus(answer: Answer, code: number, reason: string, words?: string | RegExp): void {
  expect(answer.body, answer.text.slice(0, 1000)).toMatchObject({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
  });
  expect(answer.status).toBe(code);
  expect(answer.headers.get('Content-Type')).toContain('application/json');
  if (words !== undefined) expect(answer.body.message).toMatch(words);
}

/** The fields that an error names. */
export function fieldsOf(answer: Answer): string[] {
  return (answer.body.details?.causes ?? []).map((cause: { field: string }) => cause.field);
}

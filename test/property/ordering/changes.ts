/** What one statement does to some objects of one tenant. Statements that find nothing to do are fine. */

import type { Random } from '#test/support/random.ts';
import type { Session } from '#test/property/ordering/raw-writer.ts';

export type ChangeStatement = (session: Session) => Promise<unknown>;

/** Objects per writer and tenant. */
const NAMES = 10;
/** Objects that all writers change: they wait for each other there. */
const HOT_NAMES = ['hot-0', 'hot-1'];
const FINALIZER = 'example.dev/test';

const CHANGES: readonly ChangeStatement[] = [
  upsertSome,
  upsertSome,
  changeSpecs,
  changeSpecs,
  changeSpecs,
  changeHotObject,
  changeLabels,
  changeStatuses,
  changeNothing,
  deleteSome,
  requestDeletion,
  finishDeletion,
];

export function chooseChange(random: Random): ChangeStatement {
  return random.pick(CHANGES);
}

async function upsertSome(session: Session): Promise<void> {
  const { sql, random, kind } = session;
  const finalizers = random.chance(0.3) ? [FINALIZER] : [];
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, finalizers, spec)
    select ${random.pick(session.tenants)}, 'example.dev', ${kind}, n, ${finalizers}::text[], ${size(session)}::text::jsonb
    from unnest(${someNames(session)}::text[]) n
    on conflict (api_group, kind, tenant, name) do update set annotations = jsonb_build_object('spec', excluded.spec::text)`;
}

async function changeSpecs(session: Session): Promise<void> {
  const { sql } = session;
  await sql`update plumbline.resource set spec = ${size(session)}::text::jsonb
    where deletion_timestamp is null and ${some(session)}`;
}

async function changeHotObject(session: Session): Promise<void> {
  const { sql, random, tenants, kind } = session;
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values (${random.pick(tenants)}, 'example.dev', ${kind}, ${random.pick(HOT_NAMES)}, ${size(session)}::text::jsonb)
    on conflict (api_group, kind, tenant, name) do update set spec = excluded.spec`;
}

async function changeLabels(session: Session): Promise<void> {
  const { sql, random } = session;
  await sql`update plumbline.resource set labels = jsonb_build_object('colour', ${random.pick(['red', 'blue'])}::text)
    where ${some(session)}`;
}

async function changeStatuses(session: Session): Promise<void> {
  const { sql, random } = session;
  await sql`update plumbline.resource set status = jsonb_build_object('seen', ${random.int(0, 99)}::int)
    where ${some(session)}`;
}

async function changeNothing(session: Session): Promise<void> {
  const { sql } = session;
  await sql`update plumbline.resource set spec = spec, generation = 7, resource_version = 7 where ${some(session)}`;
}

async function deleteSome(session: Session): Promise<void> {
  const { sql } = session;
  await sql`delete from plumbline.resource where finalizers = '{}' and ${some(session, 3)}`;
}

async function requestDeletion(session: Session): Promise<void> {
  const { sql } = session;
  await sql`update plumbline.resource set deletion_timestamp = now() where ${some(session, 3)}`;
}

async function finishDeletion(session: Session): Promise<void> {
  const { sql } = session;
  await sql`update plumbline.resource set finalizers = '{}', labels = '{"colour":"gone"}'
    where deletion_timestamp is not null and ${some(session)}`;
}

function some(session: Session, most: number = NAMES): ReturnType<Session['sql']> {
  const { sql, random, tenants, kind } = session;
  return sql`api_group = 'example.dev' and kind = ${kind} and tenant = ${random.pick(tenants)}
    and name = any (${someNames(session, most)}::text[])`;
}

/** Names in a row; now and then those of another writer. */
function someNames({ random, name }: Session, most: number = NAMES): string[] {
  const owner = random.chance(0.05) ? 'writer-0' : name;
  const first = random.int(0, NAMES - 1);
  const last = Math.min(NAMES - 1, first + random.int(0, most - 1));
  return Array.from({ length: last - first + 1 }, (_, index) => `${owner}-${first + index}`);
}

/** A password is a secret of some kinds. */
function size({ random }: Session): string {
  const size = random.int(0, 1000);
  return JSON.stringify({ size, password: `password ${size % 7}` });
}

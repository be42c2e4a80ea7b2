/** Writes by raw SQL on a connection of its own: everything that transactions can be, in random order. */

import postgres from 'postgres';
import type { Random } from '#test/support/random.ts';
import { chooseChange } from '#test/property/ordering/changes.ts';
import type { Ledger } from '#test/property/ordering/witness.ts';

export interface RawWriterOptions {
  readonly databaseUrl: string;
  /** Names the objects that it makes. */
  readonly name: string;
  readonly tenants: readonly string[];
  /** @default Widget */
  readonly kind?: string;
  readonly random: Random;
  readonly ledger: Ledger;
}

/** A writer's connection, inside a transaction. */
export interface Session {
  readonly sql: postgres.ReservedSql;
  /** Prefix of the names of this writer's objects. */
  readonly name: string;
  readonly tenants: readonly string[];
  readonly kind: string;
  readonly random: Random;
}

type Shape = (session: Session, inAnother: (work: Work) => Promise<void>) => Promise<'commit' | 'rollback'>;
type Work = (session: Session) => Promise<unknown>;

/** What a transaction may end with when others are in its way: it is rolled back. Deadlock, lock timeout, rules of the rows. */
const EXPECTED_ERRORS = new Set(['40P01', '55P03', '23505', 'PL409', 'PL422']);

const SHAPES: readonly (readonly [share: number, shape: Shape])[] = [
  [40, plain],
  [10, large],
  [4, heldOpen],
  [6, rolledBack],
  [8, withSavepoints],
  [6, firstIdLastCommit],
  [6, inverted],
];

/** Writes until told to stop; resolves when its last transaction has ended. */
export async function runRawWriter(options: RawWriterOptions, signal: AbortSignal): Promise<void> {
  const { name, tenants, kind = 'Widget', random, ledger } = options;
  const pool = postgres(options.databaseUrl, {
    max: 2,
    onnotice: () => undefined,
    connection: { application_name: 'test writer', deadlock_timeout: '50ms', lock_timeout: '3s' } as object,
  });
  const [main, other] = [await pool.reserve(), await pool.reserve()];
  try {
    while (!signal.aborted) await transaction(main, chooseShape(random));
  } finally {
    await pool.end({ timeout: 5 });
  }

  async function transaction(sql: postgres.ReservedSql, shape: Shape): Promise<void> {
    const own = ledger.begin();
    await sql.unsafe(`begin; set local witness.transaction = '${own.id}'`);
    try {
      const end = await shape({ sql, name, tenants, kind, random }, inAnother);
      await sql.unsafe(end);
      if (end === 'commit') ledger.acknowledge(own);
    } catch (error) {
      if (!(error instanceof postgres.PostgresError) || !EXPECTED_ERRORS.has(error.code)) throw error;
      await sql.unsafe('rollback');
    }
  }

  /** A whole transaction on the writer's second connection, while its first one is open. */
  async function inAnother(work: Work): Promise<void> {
    await transaction(other, async (session) => {
      await work(session);
      return 'commit';
    });
  }
}

function chooseShape(random: Random): Shape {
  let rest = random.int(
    1,
    SHAPES.reduce((sum, [share]) => sum + share, 0),
  );
  for (const [share, shape] of SHAPES) {
    rest -= share;
    if (rest <= 0) return shape;
  }
  return plain;
}

async function plain(session: Session): Promise<'commit'> {
  for (let count = session.random.int(1, 3); count > 0; count -= 1) await change(session);
  return 'commit';
}

/** One statement over all tenants, of all of this writer's objects. */
async function large({ sql, name, tenants, kind, random }: Session): Promise<'commit'> {
  await sql`update plumbline.resource set spec = ${sql.json({ size: random.int(0, 1000) })}
    where tenant = any (${[...tenants]}) and kind = ${kind} and name like ${`${name}-%`}`;
  return 'commit';
}

/** Its first ids are long drawn when it commits. */
async function heldOpen(session: Session): Promise<'commit'> {
  await change(session);
  await pause(session.random.int(50, 1200));
  await change(session);
  return 'commit';
}

async function rolledBack(session: Session): Promise<'rollback'> {
  await change(session);
  await change(session);
  return 'rollback';
}

async function withSavepoints(session: Session): Promise<'commit'> {
  await change(session);
  await session.sql`savepoint one`;
  await change(session);
  await session.sql.unsafe(session.random.chance(0.5) ? 'rollback to one' : 'release one');
  await change(session);
  return 'commit';
}

/** It has its transaction id before all those that commit in the meantime. */
async function firstIdLastCommit(session: Session, inAnother: (work: Work) => Promise<void>): Promise<'commit'> {
  await session.sql`select pg_current_xact_id()`;
  for (let count = session.random.int(1, 4); count > 0; count -= 1) await inAnother(change);
  await change(session);
  return 'commit';
}

/** A takes its id elsewhere; B commits a change of a row; then A changes that row: the later change has the earlier id. */
async function inverted(session: Session, inAnother: (work: Work) => Promise<void>): Promise<'commit'> {
  const { sql, random, tenants, name } = session;
  await sql`insert into witness.elsewhere values (1)`;
  const tenant = random.pick(tenants);
  const row = `${name}-${random.int(0, 9)}`;
  await inAnother((another) => setSize(another, tenant, row));
  if (random.chance(0.3)) await pause(random.int(1, 50));
  await setSize(session, tenant, row);
  return 'commit';
}

async function setSize({ sql, kind, random }: Session, tenant: string, name: string): Promise<void> {
  await sql`insert into plumbline.resource (tenant, api_group, kind, name, spec)
    values (${tenant}, 'example.dev', ${kind}, ${name}, ${sql.json({ size: random.int(0, 1000) })})
    on conflict (api_group, kind, tenant, name) do update set spec = excluded.spec`;
}

function change(session: Session): Promise<unknown> {
  return chooseChange(session.random)(session);
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * The external system of the kind with the trail: parts of entries, each changed under a fencing token. It keeps the
 * largest token that it has seen for each uid, refuses whoever comes with a lower one, and writes down who was there.
 */

import type { Sql } from '#adapters/postgres/client.ts';

export type Deed = 'begin' | 'change' | 'end';

/** Who acts: in which pass, and for whom. */
export interface Actor {
  readonly uid: string;
  readonly fencingToken: bigint;
  readonly controller: string;
  /** The process. */
  readonly holder: string;
}

export interface Part {
  readonly uid: string;
  readonly value: string;
}

export interface TrailLine extends Actor {
  readonly deed: Deed;
  readonly isRefused: boolean;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

export interface Trail {
  read(entry: string, part: string): Promise<Part | undefined>;
  /** @throws {Refused} */
  tell(actor: Actor, deed: Deed): Promise<void>;
  /** @param value undefined: takes the part away. @throws {Refused} */
  put(actor: Actor, entry: string, part: string, value: string | undefined): Promise<void>;
}

/** The token is lower than one that was seen before. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Makes the tables, in an empty database. */
export async function prepareTrail(sql: Sql): Promise<void> {
  await sql.unsafe(`
    create table part (entry text, part text, uid uuid not null, value text not null, primary key (entry, part));
    create table newest (uid uuid primary key, token bigint not null);
    create table trail (
      id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
      uid uuid not null, token bigint not null, controller text not null, holder text not null, deed text not null,
      is_refused boolean not null
    );
    -- The row of the uid stays locked to the end of the transaction: the order of ids is that of what was done.
    create function tell(p_uid uuid, p_token bigint, p_controller text, p_holder text, p_deed text) returns boolean
    language plpgsql as $$
    declare
      seen bigint;
    begin
      insert into newest as n values (p_uid, p_token)
        on conflict (uid) do update set token = greatest(n.token, excluded.token) returning token into seen;
      insert into trail (uid, token, controller, holder, deed, is_refused)
        values (p_uid, p_token, p_controller, p_holder, p_deed, seen > p_token);
      return seen = p_token;
    end $$;
    create function put(p_uid uuid, p_token bigint, p_controller text, p_holder text, p_entry text, p_part text, p_value text)
      returns boolean
    language plpgsql as $$
    begin
      if not tell(p_uid, p_token, p_controller, p_holder, 'change') then
        return false;
      elsif p_value is null then
        delete from part where entry = p_entry and part = p_part;
      else
        insert into part as p values (p_entry, p_part, p_uid, p_value)
          on conflict (entry, part) do update set uid = excluded.uid, value = excluded.value;
      end if;
      return true;
    end $$`);
}

export function openTrail(sql: Sql): Trail {
  return {
    async read(entry, part) {
      const [row] = await sql<Part[]>`select uid, value from part where entry = ${entry} and part = ${part}`;
      return row;
    },
    async tell({ uid, fencingToken, controller, holder }, deed) {
      const [row] = await sql<Answer[]>`
        select tell(${uid}, ${String(fencingToken)}::bigint, ${controller}, ${holder}, ${deed}) as "isTaken"`;
      assertTaken(row, deed);
    },
    async put({ uid, fencingToken, controller, holder }, entry, part, value) {
      const [row] = await sql<Answer[]>`select put(${uid}, ${String(fencingToken)}::bigint, ${controller}, ${holder},
        ${entry}, ${part}, ${value ?? null}) as "isTaken"`;
      assertTaken(row, 'change');
    },
  };
}

/** All that was told, in order. */
export async function readTrail(sql: Sql): Promise<readonly TrailLine[]> {
  return sql<TrailLine[]>`select uid, token as "fencingToken", controller, holder, deed, is_refused as "isRefused",
      (extract(epoch from at) * 1000)::float8 as "atMs"
    from trail order by id`;
}

interface Answer {
  readonly isTaken: boolean;
}

function assertTaken(answer: Answer | undefined, deed: Deed): void {
  if (!answer?.isTaken) throw new Refused(`the ${deed} came too late: a later pass was there before`);
}

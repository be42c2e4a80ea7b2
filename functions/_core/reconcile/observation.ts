/**
 * What is known of one thing in the real world. A read that failed, was denied, or ran out of time is `unknown`, never
 * `absent`: whoever wants the value, or wants to conclude that there is none, has to tell the three apart.
 */

export type Observation<Value> = Present<Value> | Absent | Unknown;

export interface Present<Value> {
  readonly state: 'present';
  readonly value: Value;
}

export interface Absent {
  readonly state: 'absent';
}

export interface Unknown {
  readonly state: 'unknown';
  /** Why the read told nothing. */
  readonly error: unknown;
}

export const ABSENT: Absent = Object.freeze({ state: 'absent' });

/** What a read saw; undefined is absent. Never rejects. */
export async function observe<Value>(read: () => Promise<Value | undefined>): Promise<Observation<Value>> {
  try {
    const value = await read();
    return value === undefined ? ABSENT : { state: 'present', value };
  } catch (error) {
    return { state: 'unknown', error };
  }
}

/** The world could not be read, so nothing may be concluded. The pass is repeated. */
export class ObservationFailed extends Error {
  override readonly name = 'ObservationFailed';
}

/**
 * The value, or undefined when it is known that there is none.
 * @throws {ObservationFailed} when it is unknown.
 */
export function known<Value>(observation: Observation<Value>, what: string): Value | undefined {
  switch (observation.state) {
    case 'present':
      return observation.value;
    case 'absent':
      return undefined;
    case 'unknown':
      throw new ObservationFailed(`${what} cannot be read: ${messageOf(observation.error)}`, {
        cause: observation.error,
      });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

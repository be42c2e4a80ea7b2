/**
 * Judges what watchers received by what writers committed: the guarantees G1 to G5, for any interleaving. Pure; it
 * knows nothing of how events travel.
 */

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One committed change, from a witness other than the event log. */
export interface Change {
  readonly tenant: string;
  readonly uid: string;
  readonly type: ChangeType;
  /** Absent for a deletion whose version only its event has. */
  readonly resourceVersion?: bigint;
  /** When its transaction was, by one clock of all writers: B was begun after A was acknowledged if B.begun ≥ A.acknowledged. */
  readonly transaction?: { readonly begun: number; readonly acknowledged: number };
}

export interface ReceivedEvent {
  readonly tenant: string;
  readonly seq: bigint;
  readonly id: string;
  readonly uid: string;
  readonly type: ChangeType;
  readonly resourceVersion: bigint;
}

/** What one watcher received, over all its connections, in order of arrival. */
export interface Run {
  readonly name: string;
  /** Whose events it must have; '*' for all tenants of the history. */
  readonly tenants: '*' | readonly string[];
  /** Before the first event of every stream, or behind a list: version by uid. */
  readonly start: 'origin' | ReadonlyMap<string, bigint>;
  readonly events: readonly ReceivedEvent[];
  /** It waited for everything; otherwise what is missing at its end is not lost. @default true */
  readonly isComplete?: boolean;
}

export interface Violation {
  readonly rule: 'lost' | 'twice' | 'gap' | 'order' | 'causality' | 'unknown' | 'seam' | 'disagreement';
  readonly run: string;
  readonly message: string;
}

/**
 * All violations, the first of each kind first.
 * @param history changes of one object in the order in which they took its row's lock; otherwise in any order.
 */
export function checkOrdering(history: readonly Change[], runs: readonly Run[]): readonly Violation[] {
  const objects = objectsOf(history);
  const tenants = new Set(history.map((change) => change.tenant));
  const idOfSeq = new Map<string, string>();
  return runs.flatMap((run) => {
    const streams = Map.groupBy(run.events, (event) => event.tenant);
    const expected = run.tenants === '*' ? tenants : new Set(run.tenants);
    const foreign = [...streams.keys()].filter((tenant) => !expected.has(tenant));
    return [
      ...foreign.map((tenant) => violation(run, 'unknown', `events of tenant ${tenant}, which it does not watch`)),
      ...[...streams.values()].flatMap((events) => checkStream(run, events, objects)),
      ...checkAgreement(run, idOfSeq),
      ...checkObjects(run, objects, expected),
    ];
  });
}

interface ObjectHistory {
  readonly changes: readonly Change[];
  /** Which of the changes an event tells; -1 for none. */
  indexOf(event: ReceivedEvent): number;
}

function objectsOf(history: readonly Change[]): ReadonlyMap<string, ObjectHistory> {
  const byUid = Map.groupBy(history, (change) => change.uid);
  return new Map([...byUid].map(([uid, changes]) => [uid, { changes, indexOf: indexerOf(changes) }]));
}

function indexerOf(changes: readonly Change[]): ObjectHistory['indexOf'] {
  const indices = new Map(changes.map(({ type, resourceVersion }, index) => [`${type} ${resourceVersion}`, index]));
  return ({ type, resourceVersion }) =>
    indices.get(`${type} ${resourceVersion}`) ??
    (type === 'DELETED' ? indices.get('DELETED undefined') : undefined) ??
    -1;
}

/** Dense numbers, no event twice, and no event before one that caused it. */
function checkStream(
  run: Run,
  events: readonly ReceivedEvent[],
  objects: ReadonlyMap<string, ObjectHistory>,
): readonly Violation[] {
  const found: Violation[] = [];
  const ids = new Set<string>();
  let last = run.start === 'origin' ? 0n : undefined;
  let latestBegun: { readonly at: number; readonly event: ReceivedEvent } | undefined;
  for (const event of events) {
    if (ids.has(event.id)) found.push(violation(run, 'twice', `${describe(event)} came twice`));
    ids.add(event.id);
    if (last !== undefined && event.seq <= last) {
      found.push(violation(run, 'twice', `${describe(event)} came behind seq ${last}`));
    } else if (last !== undefined && event.seq !== last + 1n) {
      found.push(violation(run, 'gap', `${describe(event)} came right behind seq ${last}`));
    }
    last = event.seq;
    const object = objects.get(event.uid);
    const transaction = object?.changes[object.indexOf(event)]?.transaction;
    if (!transaction) continue;
    if (latestBegun && latestBegun.at >= transaction.acknowledged) {
      found.push(
        violation(
          run,
          'causality',
          `${describe(latestBegun.event)} was begun after ${describe(event)}, and came first`,
        ),
      );
    }
    if (!latestBegun || transaction.begun > latestBegun.at) latestBegun = { at: transaction.begun, event };
  }
  return found;
}

/** A number means the same event to every watcher. */
function checkAgreement(run: Run, idOfSeq: Map<string, string>): readonly Violation[] {
  return run.events.flatMap((event) => {
    const key = `${event.tenant}/${event.seq}`;
    const known = idOfSeq.get(key) ?? event.id;
    idOfSeq.set(key, known);
    return known === event.id
      ? []
      : [violation(run, 'disagreement', `${describe(event)} is ${known} to another watcher`)];
  });
}

/** Each object's changes, all of them, in their order, from where the run started. */
function checkObjects(
  run: Run,
  objects: ReadonlyMap<string, ObjectHistory>,
  tenants: ReadonlySet<string>,
): readonly Violation[] {
  const received = Map.groupBy(run.events, (event) => event.uid);
  const strangers = [...received].filter(([uid]) => !objects.has(uid));
  const found = strangers.map(([uid]) => violation(run, 'unknown', `object ${uid} was never committed`));
  for (const [uid, object] of objects) {
    if (!tenants.has(object.changes[0]?.tenant ?? '')) continue;
    found.push(...checkObject(run, uid, object, received.get(uid) ?? []));
  }
  return found;
}

function checkObject(
  run: Run,
  uid: string,
  { changes, indexOf }: ObjectHistory,
  events: readonly ReceivedEvent[],
): readonly Violation[] {
  const found: Violation[] = [];
  let next = startOf(run, uid, changes, events);
  if (next === undefined) return [violation(run, 'seam', `object ${uid} was listed in a version that it never had`)];
  let version = -1n;
  for (const event of events) {
    const index = indexOf(event);
    if (index === -1) found.push(violation(run, 'unknown', `${describe(event)} was never committed`));
    else if (index < next)
      found.push(violation(run, 'order', `${describe(event)} came behind a later change of its object`));
    else if (index > next)
      found.push(violation(run, 'lost', `${index - next} changes of its object before ${describe(event)}`));
    if (event.resourceVersion <= version) {
      found.push(violation(run, 'order', `${describe(event)} came behind resourceVersion ${version}`));
    }
    version = event.resourceVersion;
    if (index >= next) next = index + 1;
  }
  if (run.isComplete !== false && next < changes.length) {
    found.push(violation(run, 'lost', `the last ${changes.length - next} of ${changes.length} changes of ${uid}`));
  }
  return found;
}

/** Which of its changes a run must see first; undefined when its list showed what never was. */
function startOf(
  run: Run,
  uid: string,
  changes: readonly Change[],
  events: readonly ReceivedEvent[],
): number | undefined {
  if (run.start === 'origin') return 0;
  const listed = run.start.get(uid);
  if (listed !== undefined) {
    const index = changes.findIndex((change) => change.type !== 'DELETED' && change.resourceVersion === listed);
    return index === -1 ? undefined : index + 1;
  }
  // Not listed: not there yet, or gone already.
  return events.length === 0 && changes.at(-1)?.type === 'DELETED' ? changes.length : 0;
}

function violation(run: Run, rule: Violation['rule'], message: string): Violation {
  return { rule, run: run.name, message };
}

function describe({ tenant, seq, type, uid, resourceVersion }: ReceivedEvent): string {
  return `${type} ${uid}@${resourceVersion} (${tenant}, seq ${seq})`;
}

/** What a pass collects on its way: conditions, fields, external objects, events. Written at its end, all or nothing. */

import { isJsonArray, isJsonObject, sameJson, type JsonObject, type JsonValue } from '#core/json.ts';
import type { Report, ReportedCondition, ReportedEvent, ReportedResource } from '#core/ports/work-queue.ts';

/** As a body of the API. */
const MOST_CHARACTERS = 1024 * 1024;

export class Findings {
  readonly conditions: Map<string, ReportedCondition> = new Map();
  readonly removedConditions: Set<string> = new Set();
  readonly events: ReportedEvent[] = [];
  readonly #fields = new Map<string, JsonValue | undefined>();
  readonly #observed = new Map<string, ReportedResource>();
  readonly #released = new Set<string>();
  readonly #underWay = new Set<string>();
  readonly #generation: number;
  readonly #before: readonly ReportedResource[];

  /** @param before what this controller listed in `status.resources`. */
  constructor(generation: number, before: readonly ReportedResource[]) {
    this.#generation = generation;
    this.#before = before;
  }

  condition(type: string, status: ReportedCondition['status'], reason: string, message: string): void {
    this.removedConditions.delete(type);
    this.conditions.set(type, { type, status, reason, message, observedGeneration: this.#generation });
  }

  removeCondition(type: string): void {
    this.conditions.delete(type);
    this.removedConditions.add(type);
  }

  field(name: string, value: JsonValue | undefined): void {
    this.#fields.set(name, value);
  }

  /** What is awaited in it must end before the function does. */
  async whileUnderWay<Value>(what: string, call: () => Promise<Value>): Promise<Value> {
    this.#underWay.add(what);
    try {
      return await call();
    } finally {
      this.#underWay.delete(what);
    }
  }

  /** @throws {Error} when the function has ended in the middle of a call: nothing is known of how that ends. */
  assertNothingUnderWay(): void {
    const [what] = this.#underWay;
    if (what !== undefined) throw new Error(`the function ended while ctx.${what} was under way; await it`);
  }

  /** @throws {Error} when it is more than a status may be; the fields are dropped then. */
  assertBounded(): void {
    const characters = JSON.stringify([[...this.#fields], [...this.conditions], [...this.#observed]]).length;
    if (characters <= MOST_CHARACTERS) return;
    this.#fields.clear();
    throw new Error(`the pass reports ${characters} characters; a status may have ${MOST_CHARACTERS}`);
  }

  observed(resource: ReportedResource): void {
    this.#observed.set(keyOf(resource), resource);
  }

  released(resource: Pick<ReportedResource, 'class' | 'id'>): void {
    this.#observed.delete(keyOf(resource));
    this.#released.add(keyOf(resource));
  }

  /** All that was made for the object and was not seen to be absent in this pass. */
  get left(): readonly ReportedResource[] {
    return this.#resources().filter((resource) => this.#observed.get(keyOf(resource))?.state !== 'absent');
  }

  get unknown(): readonly ReportedResource[] {
    return [...this.#observed.values()].filter(({ state }) => state === 'unknown');
  }

  /** Undefined when the status says all of it already. @param hide takes secrets out of what is said for people. */
  report(status: JsonObject, controller: string, hide: (text: string) => string): Report | undefined {
    const fields = [...this.#fields].flatMap(([name, value]): [string, JsonValue][] =>
      value === undefined ? [] : [[name, value]],
    );
    const report: Report = {
      conditions: [...this.conditions.values()].map((each) => ({ ...each, message: hide(each.message) })),
      removedConditions: [...this.removedConditions],
      fields: Object.fromEntries(fields),
      removedFields: [...this.#fields].flatMap(([name, value]) => (value === undefined ? [name] : [])),
      resources: this.#resources().map(({ message, ...each }) => ({
        ...each,
        id: hide(each.id),
        ...(message !== undefined && { message: hide(message) }),
      })),
    };
    return this.#isSaid(report, status, controller) ? undefined : report;
  }

  #resources(): readonly ReportedResource[] {
    const earlier = this.#before.filter((each) => !this.#released.has(keyOf(each)) && !this.#observed.has(keyOf(each)));
    return [...earlier, ...this.#observed.values()];
  }

  #isSaid(report: Report, status: JsonObject, controller: string): boolean {
    const conditions = listOf(status, 'conditions');
    return (
      status['observedGeneration'] === this.#generation &&
      report.conditions.every((condition) => conditions.some((said) => says(said, condition))) &&
      !conditions.some(({ type }) => report.removedConditions.some((removed) => removed === type)) &&
      Object.entries(report.fields).every(([name, value]) => sameJson(status[name], value)) &&
      !report.removedFields.some((name) => name in status) &&
      sameResources(resourcesOf(status, controller), report.resources ?? [])
    );
  }
}

/** What a controller has listed in `status.resources`. */
export function resourcesOf(status: JsonObject, controller: string): readonly ReportedResource[] {
  return listOf(status, 'resources').flatMap((entry) => {
    const { class: resourceClass, id, state, message } = entry as Partial<ReportedResource> & JsonObject;
    if (entry['controller'] !== controller || !resourceClass || !id || !state) return [];
    return [{ class: resourceClass, id, state, ...(message !== undefined && { message }) }];
  });
}

function sameResources(said: readonly ReportedResource[], found: readonly ReportedResource[]): boolean {
  return said.length === found.length && found.every((resource) => said.some((each) => sameJson(each, resource)));
}

function listOf(status: JsonObject, field: string): readonly JsonObject[] {
  const list = status[field];
  return isJsonArray(list) ? list.filter(isJsonObject) : [];
}

function says(said: JsonObject, condition: ReportedCondition): boolean {
  return Object.entries(condition).every(([name, value]) => said[name] === value);
}

function keyOf({ class: resourceClass, id }: Pick<ReportedResource, 'class' | 'id'>): string {
  return `${resourceClass}\n${id}`;
}

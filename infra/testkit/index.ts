/**
 * `plumbline/testkit`: runs the controllers of a kind against a real PostgreSQL, lets them die at every external call and
 * every call fail, and says what is not right then. It belongs to no test runner: it throws.
 */

import { connect } from '#adapters/postgres/client.ts';
import { registerKinds } from '#adapters/postgres/kinds.ts';
import type { Kind } from '#core/kind.ts';
import { SHIPPED_KINDS } from '#core/kinds/index.ts';
import type { Logger } from '#core/ports/logger.ts';
import { createCalls } from '#infra/testkit/calls.ts';
import { type CrashReport, crashEverywhere } from '#infra/testkit/crash-everywhere.ts';
import { openKitDatabase } from '#infra/testkit/database.ts';
import { createKitDriver } from '#infra/testkit/driver.ts';
import { wrapPort } from '#infra/testkit/external.ts';
import { faultEverywhere, type FaultOptions, type FaultReport } from '#infra/testkit/fault-everywhere.ts';
import type { Fault, FaultLooks } from '#infra/testkit/faults.ts';
import { kitObjects, type KitObjects } from '#infra/testkit/objects.ts';
import type { Scenario, Stage } from '#infra/testkit/scenario.ts';
import { lookAtAll, settle } from '#infra/testkit/settle.ts';
import { kitWork } from '#infra/testkit/work.ts';

export type { CrashReport } from '#infra/testkit/crash-everywhere.ts';
export type { FaultOptions, FaultReport } from '#infra/testkit/fault-everywhere.ts';
export { type Fault, type FaultLooks, FAULTS } from '#infra/testkit/faults.ts';
export type { CreateOptions, KitObjects, ObjectOptions } from '#infra/testkit/objects.ts';
export type { Scenario } from '#infra/testkit/scenario.ts';
export { TestKitError } from '#infra/testkit/test-kit-error.ts';

/** Wraps a port for the kinds that are tested; `name` begins the names of its calls, such as `buckets.create`. */
export type External = <Port extends object>(port: Port, name: string) => Port;

export interface TestKitOptions {
  /** The kinds to be tested, over the ports that `external` wraps; those of Plumbline are there without their controllers. */
  kinds(external: External): readonly Kind[];
  /** @default one: `acme` */
  readonly tenants?: readonly [string, ...string[]];
  /** A server on which the kit makes a database of its own, and drops it in the end. @default one that it starts */
  readonly serverUrl?: string;
  /** How failed calls look, where the port has errors of its own that controllers tell apart. */
  readonly faultLooks?: FaultLooks;
  /** Of the passes. @default nobody reads it */
  readonly logger?: Logger;
}

export interface TestKit extends KitObjects {
  /** Of the kit's database, as its owner. */
  readonly databaseUrl: string;
  /** Names of the external calls that passes have made since the kit was opened, or `settle` was called last. */
  readonly calls: readonly string[];
  /** How many passes have begun so far. */
  readonly passes: number;
  /**
   * Runs passes until there is nothing to do: every timer, retry and resync is made due, again and again, until no object
   * changes any more. @returns the external calls that they made. @throws {TestKitError} when it goes on for ever.
   */
  settle(): Promise<readonly string[]>;
  /** Lets calls of this name fail, in passes, until `heal`; every pass is tried a few times meanwhile. */
  settleWith(fault: Fault, call: string): Promise<void>;
  /** See `crash-everywhere.ts`. */
  crashEverywhere(scenario: Scenario): Promise<CrashReport>;
  /** See `fault-everywhere.ts`. */
  faultEverywhere(scenario: Scenario, options?: FaultOptions): Promise<FaultReport>;
  close(): Promise<void>;
}

/** Opens a kit; whoever opens it closes it. */
export async function openTestKit(options: TestKitOptions): Promise<TestKit> {
  const { tenants = ['acme'], serverUrl, faultLooks = {}, logger = silent } = options;
  const calls = createCalls(faultLooks);
  const tested = options.kinds((port, name) => wrapPort(port, name, calls));
  const isTested = (kind: Kind): boolean => tested.some((each) => each.group === kind.group && each.kind === kind.kind);
  const kinds = [...SHIPPED_KINDS.filter((kind) => !isTested(kind)), ...tested];

  const database = await openKitDatabase(serverUrl);
  const owner = connect(database.url, { applicationName: 'plumbline testkit', maxConnections: 2 });
  const sql = connect(database.url, {
    applicationName: 'plumbline testkit',
    maxConnections: 4,
    role: 'plumbline_worker',
  });
  const close = async (): Promise<void> => {
    await Promise.all([owner, sql].map((pool) => pool.end({ timeout: 1 })));
    await database.close();
  };
  try {
    await registerKinds(database.url, kinds);
    await owner`insert into plumbline.resource (tenant, api_group, kind, name)
      select 'system', 'plumbline.dev', 'Tenant', name from unnest(${[...tenants]}::text[]) name`;
  } catch (error) {
    await close();
    throw error;
  }
  const work = kitWork(owner, tenants);
  const driver = createKitDriver({ sql, kinds, calls, work, logger });
  const stage: Stage = { driver, work, calls };
  // Its calls are counted over all of its steps.
  let isInScenario = false;

  return {
    ...kitObjects(sql, kinds, tenants[0]),
    databaseUrl: database.url,
    get calls() {
      return calls.made;
    },
    get passes() {
      return driver.passes;
    },
    async settle() {
      if (!isInScenario) calls.start();
      await settle(driver, work);
      return calls.made;
    },
    async settleWith(fault, name) {
      calls.start({ at: 1, fault, name });
      await driver.runDue();
      await lookAtAll(driver, work);
      calls.heal();
    },
    crashEverywhere: (scenario) => inScenario(() => crashEverywhere(stage, scenario)),
    faultEverywhere: (scenario, faults) => inScenario(() => faultEverywhere(stage, scenario, faults)),
    close,
  };

  async function inScenario<Report>(run: () => Promise<Report>): Promise<Report> {
    isInScenario = true;
    try {
      return await run();
    } finally {
      isInScenario = false;
      calls.start();
    }
  }
}

const ignore = (): void => undefined;
const silent: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => silent };

/** The arguments and variables of `npm run kafka`, checked. */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { StartError, messageOf } from '#infra/_shared/life/start-error.ts';

const USAGE = [
  'usage: npm run kafka [-- --nodes 3]',
  '  --nodes     1 or 3 (default: 1)',
  '  KAFKA_PORT  of the first node; the next ones have the next ports (default: 9092; 0 picks free ones)',
  '  DATA_DIR    its data lie in DATA_DIR/kafka (default: .plumbline)',
].join('\n');
const DEFAULT_PORT = 9092;
const LAST_PORT = 65_535;

export interface KafkaArguments {
  readonly nodes: number;
  /** Absent: free ones. */
  readonly port: number | undefined;
  /** Absolute. */
  readonly dataDir: string;
}

/** @throws {StartError} that names the argument or variable, its value and what is allowed. */
export function parseKafkaArguments(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): KafkaArguments {
  const nodes = parseNodes(args);
  const { dataDir } = readConfig({ DATA_DIR: environment['DATA_DIR'] }, { isTerminal: false });
  return {
    nodes,
    port: parsePort(environment['KAFKA_PORT'] || String(DEFAULT_PORT), nodes),
    dataDir: resolve(dataDir, 'kafka'),
  };
}

function parseNodes(args: readonly string[]): number {
  const given = parse(args);
  if (given !== '1' && given !== '3') throw wrong(`--nodes is "${given}"; allowed: 1 or 3`);
  return Number(given);
}

function parse(args: readonly string[]): string {
  try {
    return parseArgs({ args: [...args], options: { nodes: { type: 'string', default: '1' } } }).values.nodes;
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function parsePort(text: string, nodes: number): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port === 0) return undefined;
  const last = LAST_PORT - nodes + 1;
  if (!(port <= last)) throw wrong(`KAFKA_PORT is "${text}"; allowed: an integer from 0 to ${last}`);
  return port;
}

function wrong(message: string): StartError {
  return new StartError(`${message}\n${USAGE}`);
}

/** What kafkajs needs to be right on the Node of today. Applied once, and to no other version than the one that was read. */

import manifest from 'kafkajs/package.json' with { type: 'json' };
import { fixConnecting } from '#adapters/kafka/fixes/connecting.ts';
import { fixMetadata } from '#adapters/kafka/fixes/metadata.ts';
import { fixProduce } from '#adapters/kafka/fixes/produce-fix.ts';
import { fixTimers } from '#adapters/kafka/fixes/timers.ts';

const VERSION = '2.2.4';

let applied = false;

/**
 * Call it before kafkajs is used.
 * @throws {Error} for another version of kafkajs: its insides may differ from those that are changed here.
 */
export function fixKafkajs(version: string = manifest.version): void {
  if (version !== VERSION) {
    throw new Error(
      `kafkajs ${version} is installed, but its fixes are for ${VERSION}; install that one (package.json pins it)`,
    );
  }
  if (applied) return;
  applied = true;
  fixConnecting();
  fixTimers();
  fixMetadata();
  fixProduce();
}

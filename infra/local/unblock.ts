/** `npm run -s unblock -- --subject jane`: removes a block, at all servers of the database. */

import { removeTokenBlock } from '#adapters/postgres/token-block-list.ts';
import { parseUnblockArguments, UNBLOCK_USAGE } from '#infra/_shared/tokens/block-arguments.ts';
import { describeBlock, onBlockList } from '#infra/_shared/tokens/block-list.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';

await runCommand(async function unblock() {
  const block = parseUnblockArguments(process.argv.slice(2));
  if (!(await onBlockList((sql) => removeTokenBlock(sql, block)))) {
    throw new StartError(`${describeBlock(block)} is not blocked; npm run -s blocks lists what is`);
  }
  process.stdout.write(`${describeBlock(block)} is not blocked any more; servers obey within 5 s\n`);
}, UNBLOCK_USAGE);

/** `npm run -s block -- --subject jane --reason "…"`: takes from tokens what they grant, at all servers of the database. */

import { userInfo } from 'node:os';
import { addTokenBlock } from '#adapters/postgres/token-block-list.ts';
import { BLOCK_USAGE, parseBlockArguments } from '#infra/_shared/tokens/block-arguments.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { describeBlock, onBlockList } from '#infra/_shared/tokens/block-list.ts';

await runCommand(async function block() {
  const { block, reason, forSeconds } = parseBlockArguments(process.argv.slice(2));
  await onBlockList((sql) => addTokenBlock(sql, { block, reason, forSeconds, by: operator() }));
  process.stdout.write(`${describeBlock(block)} is blocked; servers obey within 5 s\n`);
}, BLOCK_USAGE);

/** Not every process has a user with a name, such as one in a container. */
function operator(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

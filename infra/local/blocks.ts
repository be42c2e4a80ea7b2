/** `npm run -s blocks`: the blocks of tokens that are in force. */

import { listTokenBlocks } from '#adapters/postgres/token-block-list.ts';
import { onBlockList } from '#infra/_shared/tokens/block-list.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { formatTable } from '#infra/_shared/command-line/table.ts';

const HEADER = ['subject', 'token id', 'tenant', 'reason', 'by', 'since', 'until'];

await runCommand(async function blocks() {
  const found = await onBlockList(listTokenBlocks);
  const rows = found.map(({ subject, tokenId, tenant, reason, by, since, until }) => {
    return [subject, tokenId, tenant ?? 'everything', reason, by, since.toISOString(), until?.toISOString() ?? null];
  });
  process.stdout.write(formatTable(HEADER, rows));
});

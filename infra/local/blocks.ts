/** `npm run -s blocks`: the blocks of tokens that are in force. */

import { listTokenBlocks } from '#adapters/postgres/token-block-list.ts';
import { onBlockList } from '#infra/local/block-list.ts';
import { runCommand } from '#infra/local/command.ts';
import { formatTable } from '#infra/local/table.ts';

const HEADER = ['subject', 'token id', 'tenant', 'reason', 'by', 'since', 'until'];

await runCommand(async function blocks() {
  const found = await onBlockList(listTokenBlocks);
  const rows = found.map(({ subject, tokenId, tenant, reason, by, since, until }) => {
    return [subject, tokenId, tenant ?? 'everything', reason, by, since.toISOString(), until?.toISOString() ?? null];
  });
  process.stdout.write(formatTable(HEADER, rows));
});

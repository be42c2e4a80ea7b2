/** `npm run -s token -- --role editor --tenants acme`: prints a token that the key in DATA_DIR signed. */

import { runCommand } from '#infra/_shared/command-line/command.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { openDataDirectory } from '#infra/_shared/data-dir/data-directory.ts';
import { loadDevelopmentIdentity } from '#infra/_shared/tokens/development-identity.ts';
import { StartError } from '#infra/_shared/life/start-error.ts';
import { parseTokenArguments, TOKEN_USAGE } from '#infra/_shared/tokens/token-arguments.ts';

await runCommand(async function printToken() {
  const params = parseTokenArguments(process.argv.slice(2));
  const { dataDir, issuer } = readConfig(process.env, { isTerminal: false });
  if (issuer) throw new StartError(`TOKEN_ISSUER is set: tokens are made by ${issuer.issuer}`);
  await openDataDirectory(dataDir);
  const identity = await loadDevelopmentIdentity(dataDir);
  process.stdout.write(`${await identity.issueToken(params)}\n`);
}, TOKEN_USAGE);

/** What is told once the instance is ready: where it is, and a session to paste. */

import { relative } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '#infra/_shared/settings/config.ts';
import type { RunInfo } from '#infra/_shared/data-dir/run-file.ts';

/** On a terminal as text to copy from; in JSON logs as one line, which stays JSON. */
export function greet(config: Config, info: RunInfo, log: Pick<Logger, 'info'>): void {
  const { publicUrl, controllerUrl, opsUrl } = info;
  const session = sessionOf(config, publicUrl);
  if (config.logFormat === 'json') {
    log.info({ publicUrl, controllerUrl, opsUrl, dataDir: config.dataDir, session }, 'ready');
    return;
  }
  const addresses = [
    `  API and watch   ${publicUrl}`,
    `  controllers     ${controllerUrl}`,
    `  operations      ${opsUrl}  (/healthz /readyz /metrics)`,
    `  event log       ${config.kafka ? `Kafka at ${config.kafka.brokers.join(', ')}` : 'in the database'}`,
    `  database        ${config.databaseUrl === undefined ? 'embedded PostgreSQL' : 'DATABASE_URL'}; npm run -s sql -- "select …"`,
  ];
  process.stdout.write(`\nPlumbline is ready.\n\n${addresses.join('\n')}\n\n${session}\n\n`);
}

function sessionOf(config: Config, publicUrl: string): string {
  const token = config.issuer
    ? `<a token by ${config.issuer.issuer} for ${config.issuer.audienceNames.public}>`
    : `$(cat ${relative(process.cwd(), config.dataDir) || '.'}/tokens/admin)`;
  return [
    '# Watch every event, in one terminal:',
    `URL=${publicUrl} AUTH="Authorization: Bearer ${token}"`,
    'curl -sN -H "$AUTH" "$URL/watch/v1/events?initial=true"',
    '',
    '# Make a tenant, in another:',
    `URL=${publicUrl} AUTH="Authorization: Bearer ${token}"`,
    'curl -s -H "$AUTH" -H "Content-Type: application/json" "$URL/apis/plumbline.dev/v1/tenants" \\',
    `  -d '{"apiVersion":"plumbline.dev/v1","kind":"Tenant","metadata":{"name":"acme"},"spec":{}}'`,
  ].join('\n');
}

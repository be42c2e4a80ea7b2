/** `plumbline/client` with a server that is killed, forgets its history, and changes its keys. */

import { afterAll, describe } from 'vitest';
import { informing } from '#test/http/client/informing.ts';
import { lostHistory } from '#test/http/client/lost-history.ts';
import { resyncing } from '#test/http/client/resyncing.ts';
import { type OwnServer, startOwnServer } from '#test/support/own-server.ts';

let starting: Promise<OwnServer> | undefined;
const server = (): Promise<OwnServer> => (starting ??= startOwnServer({ TENANT_GRACE_SECONDS: '1' }));
afterAll(async () => (await starting)?.stop());

describe('a watch', () => lostHistory(server));
describe('an informer', () => informing(server));
describe('a member of a group', () => resyncing(server));

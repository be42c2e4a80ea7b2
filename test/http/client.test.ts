/** `plumbline/client` against the local composition. */

import { afterAll, describe } from 'vitest';
import { connections } from '#test/http/client/connections.ts';
import { consuming } from '#test/http/client/consuming.ts';
import { cutAnywhere } from '#test/http/client/cut-anywhere.ts';
import { watching } from '#test/http/client/watching.ts';
import { type LocalServer, startLocalServer } from '#test/http/local-server.ts';
import type { OpenTarget } from '#test/http/target.ts';

let starting: Promise<LocalServer> | undefined;
afterAll(async () => (await starting)?.stop());

const users: OpenTarget = async () => (await (starting ??= startLocalServer())).targets.public;

describe('a watch', () => watching(users));
describe('a member of a group', () => consuming(users));
describe('connections', () => connections(users));
describe('a connection', () => cutAnywhere(users));

/** `npm run -s cursor-keys -- list | rotate | retire ID | renew`: the keys that seal cursors, while servers run. */

import { parseArgs } from 'node:util';
import { type CursorKeyAdmin, type CursorKeyState, MAX_KEY_SPAN } from '#core/ports/cursor-keys.ts';
import { runCommand } from '#infra/_shared/command-line/command.ts';
import { readConfig } from '#infra/_shared/settings/config.ts';
import { onCursorKeys } from '#infra/_shared/serving/cursor-key-place.ts';
import { DURATION_FORM, parseDuration } from '#infra/_shared/command-line/duration.ts';
import { messageOf, StartError } from '#infra/_shared/life/start-error.ts';
import { formatTable } from '#infra/_shared/command-line/table.ts';

const USAGE = [
  'usage: npm run -s cursor-keys -- list | rotate [--after 30s] | retire ID | renew',
  '  list      the keys, and since when each has sealed or from when it will',
  '  rotate    adds a key, which seals once --after has passed: until then all servers come to know it',
  '  retire    removes a key that seals no more: cursors that it sealed are refused from then on',
  '  renew     one new key in place of all, at once: after a backup was restored, or keys were stolen',
].join('\n');
const DEFAULT_LEAD = '30s';

type Work = (admin: CursorKeyAdmin) => Promise<string>;

await runCommand(async function cursorKeys() {
  const work = parse(process.argv.slice(2));
  const config = readConfig(process.env, { isTerminal: false });
  process.stdout.write(await onCursorKeys(config, work));
}, USAGE);

function parse(args: string[]): Work {
  const { positionals, after } = read(args);
  const [action, id, ...rest] = positionals;
  if (action === undefined) throw wrong('what is to be done with the keys is missing');
  const isAlone = id === undefined;
  if (action === 'list' && isAlone && after === undefined) return list;
  if (action === 'renew' && isAlone && after === undefined) return renew;
  if (action === 'rotate' && isAlone) {
    const lead = leadMs(after ?? DEFAULT_LEAD);
    return (admin) => rotate(admin, lead);
  }
  if (action === 'retire' && rest.length === 0 && after === undefined) {
    if (id === undefined || !/^\d{1,5}$/.test(id)) throw wrong(`retire needs a key's id; got "${id ?? ''}"`);
    return (admin) => retire(admin, Number(id));
  }
  throw wrong(`not understood: ${JSON.stringify(args.join(' '))}`);
}

function read(args: string[]): { readonly positionals: string[]; readonly after: string | undefined } {
  try {
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: { after: { type: 'string' } },
    });
    return { positionals, after: values.after };
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function leadMs(text: string): number {
  const seconds = parseDuration(text);
  if (seconds === undefined) throw wrong(`--after is "${text}"; allowed: ${DURATION_FORM}`);
  return seconds * 1000;
}

async function list(admin: CursorKeyAdmin): Promise<string> {
  const keys = await admin.list();
  const sealing = keys.findLast(({ sealsFrom }) => sealsFrom.getTime() <= Date.now());
  const stateOf = ({ id, sealsFrom }: CursorKeyState): string => {
    if (id === sealing?.id) return 'seals';
    return sealsFrom.getTime() > Date.now() ? 'opens, will seal' : 'opens';
  };
  const rows = keys.map((key) => [String(key.id), stateOf(key), key.sealsFrom.toISOString()]);
  return formatTable(['id', 'state', 'seals from'], rows);
}

async function rotate(admin: CursorKeyAdmin, leadMs: number): Promise<string> {
  const added = await admin.rotate(leadMs);
  if (!added) {
    throw new StartError(
      `no key was added: another rotation was faster, or the ids span ${MAX_KEY_SPAN} already; list the keys, retire the oldest`,
    );
  }
  return `key ${added.id} seals from ${added.sealsFrom.toISOString()}\n`;
}

async function retire(admin: CursorKeyAdmin, id: number): Promise<string> {
  const outcome = await admin.retire(id);
  if (outcome === 'retired') return `key ${id} is retired: servers refuse what it sealed within seconds\n`;
  if (outcome === 'unknown') throw new StartError(`there is no key ${id}; list shows those that there are`);
  throw new StartError(`key ${id} is in use: rotate first, and wait until a newer key has sealed for 10 s`);
}

async function renew(admin: CursorKeyAdmin): Promise<string> {
  const { id } = await admin.renew();
  return `key ${id} seals, and is the only one: servers refuse what was sealed before within seconds\n`;
}

function wrong(message: string): StartError {
  return new StartError(`${message}\n${USAGE}`);
}

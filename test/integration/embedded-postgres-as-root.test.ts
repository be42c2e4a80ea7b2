import { cp, lstat, mkdir, mkdtemp, realpath, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Child, startChild } from '#test/support/child.ts';
import { HOLDER, copyCheckout } from '#test/support/checkout.ts';
import { query } from '#test/support/embedded.ts';

const isRoot = process.getuid?.() === 0;

interface Held {
  readonly holder: Child;
  readonly url: string;
  readonly clusterDirectory: string;
}

// PostgreSQL refuses root, so root must lend it another account, and that one cannot enter below a folder of mode 700.
// Other accounts need none of this, and cannot make such a folder for root.
describe.skipIf(!isRoot)('startEmbeddedPostgres() as root, in a checkout below a folder of mode 700', () => {
  let checkout: string;
  /** A temp folder that DATA_DIR is not in, so that DATA_DIR counts as durable. */
  let temporary: string;
  let children: Child[] = [];
  const homes = new Set<string>();

  beforeAll(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'plumbline-checkout-'));
    expect((await stat(checkout)).mode & 0o777).toBe(0o700);
    await copyCheckout(checkout);
    temporary = await mkdtemp(join(tmpdir(), 'plumbline-tmp-'));
  });

  afterEach(async () => {
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(children.map((child) => child.exit));
    children = [];
  });

  afterAll(async () => {
    for (const path of [checkout, temporary, ...homes])
      await rm(path, { recursive: true, force: true, maxRetries: 10 });
  });

  async function start(dataDir: string, env: Readonly<Record<string, string>> = {}): Promise<Held> {
    const holder = startChild(HOLDER, [join(checkout, dataDir)], { cwd: checkout, env });
    children.push(holder);
    const line = await holder.nextLine();
    if (line === undefined) throw new Error((await holder.exit).errors);
    homes.add(await realpath(join(checkout, dataDir, 'postgres')));
    return { holder, ...JSON.parse(line) };
  }

  async function stop({ holder }: Held): Promise<void> {
    holder.end();
    expect((await holder.exit).code).toBe(0);
  }

  test('runs under an unprivileged account that owns the data, beside the temp folder where DATA_DIR is in it', async () => {
    // PostgreSQL itself insists on being the owner.
    const { clusterDirectory } = await start('temporary');
    expect((await stat(clusterDirectory)).uid).not.toBe(0);
    expect((await stat(clusterDirectory)).mode & 0o777).toBe(0o700);
    expect(clusterDirectory.startsWith(join(await realpath(tmpdir()), 'plumbline-data-'))).toBe(true);
  });

  test('keeps data in a durable place when DATA_DIR is in one, over a stop and a start', async () => {
    const first = await start('durable', { TMPDIR: temporary });
    expect(first.clusterDirectory).toMatch(/^\/var\/lib\/plumbline\/data-/);
    await query(first.url, 'create table kept as select 42 as answer');
    await stop(first);
    const second = await start('durable', { TMPDIR: temporary });
    expect(second.clusterDirectory).toBe(first.clusterDirectory);
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('begins empty when DATA_DIR was removed', async () => {
    const first = await start('removed');
    await query(first.url, 'create table kept as select 42 as answer');
    await stop(first);
    await rm(join(checkout, 'removed'), { recursive: true });
    const second = await start('removed');
    await expect(query(second.url, 'select answer from kept')).rejects.toMatchObject({ code: '42P01' });
  });

  test('removes data of the temp folder that no DATA_DIR links to, but not while a server runs on them', async () => {
    const [gone, anew, kept, running] = [
      await start('gone'),
      await start('anew'),
      await start('kept'),
      await start('running'),
    ];
    for (const server of [gone, anew, kept]) await stop(server);
    for (const dataDir of ['gone', 'anew', 'running']) await rm(join(checkout, dataDir), { recursive: true });
    await start('anew');
    await expect(stat(gone.clusterDirectory)).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(stat(anew.clusterDirectory)).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(stat(kept.clusterDirectory)).resolves.toBeDefined();
    expect(await query(running.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('refuses a copied DATA_DIR while the cluster that it shares runs', async () => {
    const { holder } = await start('original');
    await cp(join(checkout, 'original'), join(checkout, 'copy'), { recursive: true, verbatimSymlinks: true });
    expect((await lstat(join(checkout, 'copy', 'postgres'))).isSymbolicLink()).toBe(true);
    await expect(start('copy')).rejects.toThrow(`in use by process ${holder.pid}`);
  });

  test('says what to do when the link leads nowhere', async () => {
    await mkdir(join(checkout, 'dangling'));
    await symlink(join(temporary, 'absent'), join(checkout, 'dangling', 'postgres'));
    await expect(start('dangling')).rejects.toThrow('links to a folder that is gone');
  });
});

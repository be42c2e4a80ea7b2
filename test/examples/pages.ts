import { promises as fs, statSync } from 'node:fs';
import { defineKind, type Kind, known, markerText, OwnershipConflict, type PassContext } from 'plumbline';
import * as v from 'valibot';

export const files = {
  read: async (file: string): Promise<string | undefined> =>
    statSync(file, { throwIfNoEntry: false }) && fs.readFile(file, 'utf8'),
  write: async (file: string, html: string): Promise<void> => fs.writeFile(file, html),
  remove: async (file: string): Promise<void> => fs.rm(file, { force: true }),
};
export function pageKind(folder: string, { read, write, remove }: typeof files): Kind {
  const fileOf = (ctx: PassContext) => `${folder}/${ctx.tenant}.${ctx.object.metadata.name}.html`;
  const look = async (ctx: PassContext) => {
    const seen = await ctx.observe('page', fileOf(ctx), async () => read(fileOf(ctx)));
    const html = known(seen, 'the page'); // throws when it could not be read: unknown is never absent
    return { html, isOurs: html?.includes(markerText(ctx.marker)) ?? true };
  };
  const spec = v.strictObject({ title: v.string() });
  const reconcile = async (ctx: PassContext<v.InferOutput<typeof spec>>) => {
    const { html, isOurs } = await look(ctx);
    if (!isOurs) throw new OwnershipConflict(`${fileOf(ctx)} is not ours; it stays as it is`);
    const wanted = `<!-- ${markerText(ctx.marker)} --><h1>${ctx.object.spec.title}</h1>`;
    if (html === wanted) return;
    await ctx.act('write the page', async () => write(fileOf(ctx), wanted));
    await look(ctx); // ready is what was seen, not what was sent
  };
  const finalize = async (ctx: PassContext) => {
    const { html, isOurs } = await look(ctx);
    if (!isOurs) ctx.release('page', fileOf(ctx));
    else if (html !== undefined) await ctx.act('remove the page', async () => remove(fileOf(ctx)));
    if (isOurs) await look(ctx); // all that is ours must be seen to be absent in this very pass
    return { finalized: true } as const;
  };
  const names = { group: 'example.dev', version: 'v1', kind: 'Page', plural: 'pages', scope: 'Namespaced' } as const;
  return defineKind({ ...names, spec, controllers: [{ name: 'page', reconcile, finalize }] });
}
const kinds: readonly Kind[] = [pageKind(process.env['PAGES'] ?? '.', files)];
export default kinds; // oxlint-disable-line import/no-default-export

/**
 * GET on a collection. A list shows the state at the log's head, and its cursor is that place in the log: a watch from
 * it misses nothing and repeats nothing. Where no such place can be told, there is no cursor, and a warning says why.
 */

import type { Context } from 'hono';

import { answerList, warn, type ListAnswer } from '#functions/api/answers.ts';
import type { ApiDeps } from '#functions/api/deps.ts';
import { tenantNotFound } from '#http/errors.ts';
import { listQuery, type ListQuery } from '#functions/api/parameters.ts';
import { collectionTarget, isTenantKind, type CollectionTarget } from '#functions/api/target.ts';
import { assertNotOlder } from '#functions/api/list-version.ts';
import { listOwnTenants, tenantExists } from '#functions/api/tenants.ts';
import type { HttpEnv } from '#http/app.ts';
import { authorize, forbidden } from '#http/authorize.ts';
import type { MethodHandler } from '#http/methods.ts';
import { continueBinding, type ContinueState } from '#core/continue-token.ts';
import { grantedTo, isOpenSet, narrowScope, seesTenant, SYSTEM_TENANT, type Scope } from '#core/identity.ts';
import { apiVersionOf } from '#core/kind.ts';
import type { ListPage, ListParams } from '#core/ports/resources.ts';
import { StatusError } from '#core/status-error.ts';

/** No object has this name. */
const NO_NAME = '-';

/** The objects of a kind under another name. */
export interface ListView {
  readonly group: string;
  readonly kind: string;
  readonly item: NonNullable<ListAnswer['item']>;
  target(c: Context<HttpEnv>): CollectionTarget;
}

/** One page, with the first page's cursor. */
export function listObjects({ store, kinds, cursors, continueTokens }: ApiDeps, view?: ListView): MethodHandler {
  return async (c) => {
    const target = view?.target(c) ?? collectionTarget(c, kinds);
    const { kind, caller, visible, tenant } = target;
    authorize(caller, 'list', kind, tenant);
    const query = listQuery(c);
    await assertNotOlder(store, query.version);
    const scope = scopeOf(target, query);
    const binding = continueBinding({
      audience: caller.audience,
      tenants: visible.tenants,
      group: (view ?? kind).group,
      kind: (view ?? kind).kind,
      ...(tenant !== undefined && { tenant }),
      ...query.texts,
    });
    const before = query.continueToken === undefined ? undefined : continueTokens.open(query.continueToken, binding);
    const [page] = await Promise.all([
      read(target, scope, query, before),
      before?.cursor !== undefined && assertGoesOn(before.cursor, target, scope, binding, before),
    ]);
    const cursor = before === undefined ? cursorOf(c, target, scope, page) : before.cursor;
    const after = page.more ? (page.scannedTo ?? page.rows.at(-1)) : undefined;
    const remaining = after && (await remainingAfter(target, scope, query, page, before));
    const next: ContinueState | undefined = after && {
      after,
      ...(cursor !== undefined && { cursor }),
      ...(remaining !== undefined && { remaining }),
    };
    return answerList(c, {
      apiVersion: view ? 'v1' : apiVersionOf(kind),
      kind: (view ?? kind).kind,
      rows: page.rows,
      item: view?.item,
      cursor,
      continueToken: next && continueTokens.seal(next, binding),
      remainingItemCount: next?.remaining,
    });
  };

  /** The tenants that the list is about; a list that is cut down to one is a list of that one. */
  function scopeOf({ kind, caller, visible, tenant }: CollectionTarget, { fields }: ListQuery): Scope {
    if (kind.scope === 'Cluster' && !seesTenant(visible, SYSTEM_TENANT)) {
      if (!isTenantKind(kind) || isOpenSet(visible.tenants)) throw forbidden(caller, 'list', kind, tenant);
      return visible;
    }
    if (tenant !== undefined) return { tenants: [tenant] };
    return fields.namespace === undefined ? visible : narrowScope(visible, [fields.namespace]);
  }

  async function read(
    { kind, visible, tenant }: CollectionTarget,
    scope: Scope,
    { fields, labels, limit }: ListQuery,
    before: ContinueState | undefined,
  ): Promise<ListPage> {
    const isElsewhere = fields.namespace !== undefined && tenant !== undefined && fields.namespace !== tenant;
    const name = fields.isEmpty || isElsewhere ? NO_NAME : fields.name;
    const tenants = kind.scope === 'Cluster' ? [] : fields.not.namespaces;
    const params: ListParams = {
      group: kind.group,
      kind: kind.kind,
      labels,
      limit,
      ...(fields.not.names.length + tenants.length > 0 && { except: { names: fields.not.names, tenants } }),
      ...(tenant !== undefined && { tenant }),
      ...(name !== undefined && { name }),
      ...(before && { after: before.after }),
    };
    if (tenant === SYSTEM_TENANT && !isOpenSet(visible.tenants) && !seesTenant(visible, SYSTEM_TENANT)) {
      return listOwnTenants(store, visible.tenants, params);
    }
    const page = await store.list(scope, params);
    // A tenant that does not exist and one that the caller may not see must answer the same.
    const isKnown = page.rows.length > 0 || tenant === undefined || tenant === SYSTEM_TENANT;
    if (!isKnown && !(await tenantExists(store, tenant))) throw tenantNotFound(tenant);
    return page;
  }

  /**
   * A watch from the first page's cursor must still be possible, or the pages are of no one state.
   * @throws {StatusError} Expired, with the way to go on without a cursor.
   */
  async function assertGoesOn(
    cursor: string,
    { caller, visible }: CollectionTarget,
    scope: Scope,
    binding: string,
    { after, remaining }: ContinueState,
  ): Promise<void> {
    const { tenants } = scope === visible ? grantedTo(caller) : scope;
    if (!(await store.isBehindRetention(cursors.open(cursor, caller.audience, tenants)))) return;
    const message =
      'the list took so long that what changed since its first page is not kept any more: list from the start, or go on ' +
      'from metadata.continue, without a cursor to watch from';
    const next = { after, ...(remaining !== undefined && { remaining }) };
    throw new StatusError('Expired', message, { continueToken: continueTokens.seal(next, binding) });
  }

  /**
   * Counted for the first page, and reckoned for the others: counting 100,000 objects takes longer than a page of 500.
   * As in Kubernetes, there is none where objects are selected, and it is near the truth, not the truth.
   */
  async function remainingAfter(
    { kind, visible, tenant }: CollectionTarget,
    scope: Scope,
    { texts }: ListQuery,
    { rows }: ListPage,
    before: ContinueState | undefined,
  ): Promise<number | undefined> {
    const last = rows.at(-1);
    const isSelected = texts.labelSelector !== undefined || texts.fieldSelector !== undefined;
    if (!last || isSelected) return undefined;
    if (before) return before.remaining === undefined ? undefined : positive(before.remaining - rows.length);
    if (tenant === SYSTEM_TENANT && !seesTenant(visible, SYSTEM_TENANT)) return undefined;
    const params = { group: kind.group, kind: kind.kind, ...(tenant !== undefined && { tenant }), after: last };
    const count = await store.countAfter(scope, params);
    return count === undefined ? undefined : positive(count);
  }

  function cursorOf(c: Context<HttpEnv>, target: CollectionTarget, scope: Scope, page: ListPage): string | undefined {
    const { caller, visible, tenant } = target;
    if (tenant === SYSTEM_TENANT && !seesTenant(visible, SYSTEM_TENANT)) return undefined;
    if (page.head === undefined) {
      warn(c, 'the event log is behind: the list is current, and has no cursor to watch from; list again');
      return undefined;
    }
    try {
      const { tenants } = scope === visible ? grantedTo(caller) : scope;
      return cursors.seal(page.head, caller.audience, tenants);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      warn(c, `the list has no cursor: ${error.message}`);
      return undefined;
    }
  }
}

/** Others may have deleted what was counted. */
function positive(count: number): number | undefined {
  return count > 0 ? count : undefined;
}

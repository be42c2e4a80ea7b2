/** The verbs of one path: OPTIONS tells them, and any other one is answered 405 with the list of them. */

import type { Context } from 'hono';

import type { HttpEnv } from '#http/app.ts';
import { answerStatus } from '#http/errors.ts';
import { StatusError } from '#core/status-error.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type MethodHandler = (c: Context<HttpEnv>) => Response | Promise<Response>;

export interface MethodsOptions {
  /** Whether HEAD is answered where GET is. @default true */
  readonly head?: boolean;
}

/** A handler for all verbs of a path. */
export function methods(
  table: Partial<Record<Method, MethodHandler>>,
  { head = true }: MethodsOptions = {},
): MethodHandler {
  return (c) => {
    const method = head && c.req.method === 'HEAD' ? 'GET' : c.req.method;
    const handler = Object.hasOwn(table, method) ? table[method as Method] : undefined;
    if (handler) return handler(c);
    if (method === 'OPTIONS') return c.body(null, 204, { Allow: allowOf(Object.keys(table), head) });
    return answerMethodNotAllowed(c, Object.keys(table), { head });
  };
}

export function answerMethodNotAllowed(
  c: Context<HttpEnv>,
  allowed: readonly string[],
  { head = true }: MethodsOptions = {},
): Response {
  const allow = allowOf(allowed, head);
  const error = new StatusError('MethodNotAllowed', `${c.req.method} is not possible here; possible are ${allow}`);
  return answerStatus(c, error, { Allow: allow });
}

function allowOf(methods: readonly string[], head: boolean): string {
  return methods.flatMap((method) => (head && method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

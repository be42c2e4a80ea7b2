/**
 * Wraps a port, so that each of its asynchronous methods is a call that can fail, or at which the process can die.
 * Objects that its methods give, and that have methods themselves, are wrapped too: clients, sessions, folders of methods.
 */

import { types } from 'node:util';
import type { Calls } from '#infra/testkit/calls.ts';

type AnyFunction = (...args: unknown[]) => unknown;

export function wrapPort<Port extends object>(port: Port, name: string, calls: Calls): Port {
  // Whether a method is asynchronous shows when it is first called: by its promise.
  const asynchronous = new Set<string>();
  const iterables = new Set<string>();
  const wrapped = new WeakMap<object, unknown>();
  return wrap(port, name) as Port;

  function wrap(value: unknown, path: string, self?: object): unknown {
    if (typeof value === 'function') return wrapFunction(value as AnyFunction, path, self);
    if (!hasMethods(value)) return value;
    const known = wrapped.get(value);
    if (known) return known;
    // Not of the object itself: a frozen one must give what it has.
    const proxy: unknown = new Proxy(Object.create(value) as object, {
      get: (_, key) => {
        const property: unknown = Reflect.get(value, key, value);
        return typeof key === 'symbol' ? property : wrap(property, `${path}.${key}`, value);
      },
    });
    wrapped.set(value, proxy);
    return proxy;
  }

  function wrapFunction(method: AnyFunction, path: string, self: object | undefined): AnyFunction {
    return (...args) => {
      const apply = (given: readonly unknown[]): unknown => Reflect.apply(method, self, given);
      const isIterable = types.isGeneratorFunction(method) || iterables.has(path);
      const isAsynchronous = types.isAsyncFunction(method) || asynchronous.has(path) || calls.isNamed(path);
      if (isAsynchronous && !isIterable)
        return make(
          path,
          () => apply(args),
          () => apply(args.map(withoutSignal)),
        );
      const result = apply(args);
      if (isThenable(result)) {
        asynchronous.add(path);
        // It is under way already, and whoever dies does not ask for its answer.
        void Promise.resolve(result).catch(() => undefined);
        return make(
          path,
          () => result,
          () => result,
        );
      }
      if (isAsyncIterable(result)) {
        iterables.add(path);
        return iterate(result, path);
      }
      return wrap(result, path);
    };
  }

  async function make(path: string, call: () => unknown, late: () => unknown): Promise<unknown> {
    const answer = await calls.make(
      path,
      async () => call(),
      async () => late(),
    );
    return wrap(answer, path);
  }

  /** One call, whose answer is all that it gives. */
  async function* iterate(iterable: AsyncIterable<unknown>, path: string): AsyncGenerator {
    const all: unknown[] = [];
    try {
      const answer = await calls.make(path, async () => {
        for await (const element of iterable) all.push(element);
        return all;
      });
      yield* answer;
    } catch (error) {
      // It breaks off in the middle: those before were given.
      yield* all.slice(0, Math.floor(all.length / 2));
      throw error;
    }
  }
}

/** A call that arrives late was sent while nobody had given it up. */
function withoutSignal(argument: unknown): unknown {
  if (argument instanceof AbortSignal) return new AbortController().signal;
  if (
    typeof argument === 'object' &&
    argument !== null &&
    'signal' in argument &&
    argument.signal instanceof AbortSignal
  )
    return { ...argument, signal: new AbortController().signal };
  return argument;
}

/** Deep enough for a folder of methods in a folder; data of any depth, and circles, cost nothing. */
const DEEPEST = 2;

function hasMethods(value: unknown, depth: number = 0): value is object {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Array.isArray(value)) return false;
  const isBuiltIn = [Date, Map, Set, RegExp, Error, Promise, AbortSignal, URL, ArrayBuffer].some(
    (builtIn) => value instanceof builtIn,
  );
  if (isBuiltIn) return false;
  for (let each: object | null = value; each !== null && each !== Object.prototype; each = prototypeOf(each)) {
    for (const [key, { value: property }] of Object.entries(Object.getOwnPropertyDescriptors(each))) {
      if (key === 'constructor') continue;
      if (typeof property === 'function') return true;
      if (each === value && depth < DEEPEST && hasMethods(property, depth + 1)) return true;
    }
  }
  return false;
}

function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value) as object | null;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

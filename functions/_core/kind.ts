/**
 * Kinds: what a team declares. A kind is a value, checked when it is made and frozen: its names, the schemas of spec
 * and status, which paths are secret, and the controllers that make the world match its objects.
 */

import type * as v from 'valibot';

import { isKindVersion } from '#core/kind-version.ts';
import { dnsLabelProblem, dnsSubdomainProblem, domainQualifiedNameProblem } from '#core/names.ts';
import { checkController, type Controller, type ControllerDefinition } from '#core/reconcile/controller.ts';
import {
  checkControllerElsewhere,
  type ControllerElsewhere,
  type ControllerElsewhereDefinition,
} from '#core/reconcile/controller-elsewhere.ts';

/**
 * A schema of spec or status. It must be synchronous, and give JSON that it accepts again and gives back unchanged:
 * what it gives is what is stored, so its defaults and its pruning apply.
 */
export type DocumentSchema<Document extends object> = v.GenericSchema<unknown, Document>;

export interface KindDefinition<Spec extends object, Status extends object> {
  /** A domain of yours, such as `example.dev`. */
  readonly group: string;
  /** Such as `v1` or `v1alpha2`. */
  readonly version: string;
  /** In PascalCase, such as `Widget`. */
  readonly kind: string;
  /** As it stands in paths, such as `widgets`. */
  readonly plural: string;
  /** @default the kind in lower case */
  readonly singular?: string;
  /** Objects of a `Namespaced` kind belong to a tenant, those of a `Cluster` kind to the whole installation. */
  readonly scope: 'Namespaced' | 'Cluster';
  readonly spec: DocumentSchema<Spec>;
  /** @default any object */
  readonly status?: DocumentSchema<Status>;
  /**
   * Secret paths, such as `spec.password` or `spec.users.*.token`, where `*` is every element. They can be written and
   * never read: no answer, event or log has them. A PUT that leaves one out keeps it.
   */
  readonly redact?: readonly string[];
  /**
   * Paths such as `spec.server`, whose values cannot change, come or go once the object is there: a write that tries is
   * refused (422). A path stands for all that lies below it; elements of lists have no path. Raw SQL is not held to it.
   * None is secret, nor has secrets below it: who writes guesses would be told which one is the stored value.
   */
  readonly immutable?: readonly string[];
  /** Put on every new object, such as `example.dev/cleanup`, beside those of the controllers: for controllers elsewhere. */
  readonly finalizers?: readonly string[];
  readonly controllers?: readonly ControllerDefinition<Spec, Status>[];
  /** Programs of your own that watch the kind and report to `/status`: what of the status each has to itself. */
  readonly controllersElsewhere?: readonly ControllerElsewhereDefinition[];
}

/** A checked kind. Lists are there even when they are empty. */
export interface Kind<Spec extends object = object, Status extends object = object> extends Omit<
  KindDefinition<Spec, Status>,
  'singular' | 'redact' | 'immutable' | 'finalizers' | 'controllers' | 'controllersElsewhere'
> {
  readonly singular: string;
  readonly redact: readonly string[];
  readonly immutable: readonly string[];
  /** Those of the controllers too. */
  readonly finalizers: readonly string[];
  readonly controllers: readonly Controller<Spec, Status>[];
  readonly controllersElsewhere: readonly ControllerElsewhere[];
}

const PASCAL_CASE = /^[A-Z][A-Za-z0-9]{0,62}$/;
const SECRET_PATH = /^(spec|status)(\.(\*|[^.*\s]+))+$/;
const IMMUTABLE_PATH = /^spec(\.[^.*\s]+)+$/;
/** Words that stand in paths where a plural could stand. */
const RESERVED_PLURALS: readonly string[] = ['namespaces', 'status', 'forceddeletions'];

/**
 * Makes a kind.
 * @throws {TypeError} naming the kind and everything that is wrong with its definition.
 */
export function defineKind<Spec extends object, Status extends object = object>(
  definition: KindDefinition<Spec, Status>,
): Kind<Spec, Status> {
  const {
    group,
    version,
    kind,
    plural,
    scope,
    spec,
    status,
    redact = [],
    immutable = [],
    finalizers = [],
  } = definition;
  const singular = definition.singular ?? lowerCase(kind);
  const problems: string[] = [];

  check('group', group, dnsSubdomainProblem);
  if (typeof group === 'string' && !group.includes('.')) problems.push('group must be a domain, such as "example.dev"');
  check('version', version, (text) =>
    isKindVersion(text) ? undefined : 'must look like "v1", "v2beta1" or "v1alpha3"',
  );
  check('kind', kind, (text) => (PASCAL_CASE.test(text) ? undefined : 'must be in PascalCase, such as "Widget"'));
  check('plural', plural, (text) =>
    RESERVED_PLURALS.includes(text) ? "is a reserved word of the API's paths" : dnsLabelProblem(text),
  );
  check('singular', singular, dnsLabelProblem);
  if (scope !== 'Namespaced' && scope !== 'Cluster') problems.push('scope must be "Namespaced" or "Cluster"');
  checkSchema('spec', spec);
  if (status !== undefined) checkSchema('status', status);
  for (const path of redact) {
    check('redact', path, (text) =>
      SECRET_PATH.test(text) ? undefined : 'must be a path below spec or status, such as "spec.users.*.token"',
    );
  }
  for (const path of immutable) {
    check('immutable', path, (text) =>
      IMMUTABLE_PATH.test(text) ? undefined : 'must be a path below spec without "*", such as "spec.server"',
    );
    const secret = redact.find((other) => coversOther(other, path));
    if (secret !== undefined) {
      problems.push(
        `immutable ${JSON.stringify(path)} and redact ${JSON.stringify(secret)} meet: who writes guesses would be told ` +
          'which one is right, as only that one is not refused; leave one of the two out',
      );
    }
  }
  for (const finalizer of finalizers) check('finalizers', finalizer, domainQualifiedNameProblem);
  if (new Set(finalizers).size < finalizers.length) problems.push('finalizers has the same name twice');
  const controllers = (definition.controllers ?? []).map((each) => checkController(group, each, problems));
  const controllersElsewhere = (definition.controllersElsewhere ?? []).map((each) =>
    checkControllerElsewhere(group, each, problems),
  );
  checkShares([...controllers, ...controllersElsewhere], problems);
  const own = controllers.flatMap(({ finalizer }) => finalizer ?? []);

  if (problems.length > 0) throw new TypeError(`kind ${group}/${kind}: ${problems.join('; ')}`);
  return Object.freeze({
    group,
    version,
    kind,
    plural,
    singular,
    scope,
    spec,
    ...(status && { status }),
    redact: Object.freeze([...redact]),
    immutable: Object.freeze([...immutable]),
    finalizers: Object.freeze([...new Set([...finalizers, ...own])]),
    controllers: Object.freeze(controllers),
    controllersElsewhere: Object.freeze(controllersElsewhere),
  });

  function check(field: string, value: unknown, problem: (text: string) => string | undefined): void {
    const found = typeof value === 'string' ? problem(value) : 'must be a text';
    if (found) problems.push(`${field} ${JSON.stringify(value)} ${found}`);
  }

  function checkSchema(field: string, schema: unknown): void {
    const isSchema = typeof schema === 'object' && schema !== null && 'kind' in schema && schema.kind === 'schema';
    if (!isSchema) problems.push(`${field} must be a valibot schema, such as v.object({…})`);
    else if ('async' in schema && schema.async === true) problems.push(`${field} must be a synchronous schema`);
  }
}

/** Whether one of two paths leads to the other, or to what lies below it; `*` is any key. */
function coversOther(one: unknown, other: unknown): boolean {
  if (typeof one !== 'string' || typeof other !== 'string') return false;
  const [left, right] = [one.split('.'), other.split('.')];
  return left.slice(0, right.length).every((key, index) => key === '*' || key === right[index]);
}

/** What two controllers of one kind both set, each would undo for the other. */
function checkShares(
  controllers: readonly (ControllerElsewhere & { readonly summary?: string })[],
  problems: string[],
): void {
  const owners = new Map<string, string>();
  for (const { name, summary, conditions, statusFields } of controllers) {
    const types = summary === undefined ? conditions : [summary, ...conditions];
    const shares = [`name ${name}`, ...types.map((type) => `condition ${type}`)];
    for (const share of [...shares, ...statusFields.map((field) => `status field ${field}`)]) {
      const owner = owners.get(share);
      if (owner !== undefined) problems.push(`controllers "${owner}" and "${name}" both have the ${share}`);
      owners.set(share, name);
    }
  }
}

/** Definitions may come from JavaScript: a kind that is no text is reported, not thrown upon. */
function lowerCase(kind: unknown): string {
  return typeof kind === 'string' ? kind.toLowerCase() : '';
}

/** `group/version`, as objects name it. */
export function apiVersionOf(kind: Pick<Kind, 'group' | 'version'>): string {
  return `${kind.group}/${kind.version}`;
}

/** `plural.group`, as messages name the objects of a kind. */
export function resourceOf(kind: Pick<Kind, 'group' | 'plural'>): string {
  return `${kind.plural}.${kind.group}`;
}

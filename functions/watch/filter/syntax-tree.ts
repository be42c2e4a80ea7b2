/** The parts of the library's syntax tree that this folder relies on; its own types leave out what macros expand to. */

export type Evaluate = (evaluator: Evaluator, node: Node, scope: unknown) => unknown;

export interface Evaluator {
  run(node: Node, scope: unknown): unknown;
}

export interface Node {
  readonly op: string;
  readonly args: unknown;
  readonly start: number;
  /** The start; of an attribute, that of its name. */
  readonly pos: number;
  readonly meta: {
    readonly evaluate: Evaluate;
    /** What a macro such as `exists` expands to. */
    readonly alternate?: Node;
    /** A macro with an evaluation of its own: `has`. */
    readonly macro?: unknown;
  };
  setMeta(key: 'evaluate', value: Evaluate): Node;
}

/** The name and the operands of a call, the receiver of a method first; undefined for all else. */
export function callOf(node: Node): { readonly name: string; readonly operands: readonly Node[] } | undefined {
  if (node.op !== 'call' && node.op !== 'rcall') return undefined;
  const [name, ...operands] = node.args as [string, ...unknown[]];
  return { name, operands: nodesIn(operands) };
}

/** The operands as they are written. */
export function operandsOf(node: Node): readonly Node[] {
  return nodesIn(node.args);
}

/** The nodes that are evaluated for this one. */
export function expansionOf(node: Node): readonly Node[] {
  return node.meta.alternate ? [node.meta.alternate] : (loopOf(node) ?? operandsOf(node));
}

/** Of a loop that a macro expands to: what it goes over, its first result, and what makes the next one. */
export function loopOf(node: Node): readonly [Node, Node, Node] | undefined {
  if (node.op !== 'comprehension') return undefined;
  const { iterable, init, step } = node.args as { iterable: Node; init: Node; step: Node };
  return [iterable, init, step];
}

function nodesIn(value: unknown): readonly Node[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return isNode(value) ? [value] : [];
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'op' in value && 'setMeta' in value;
}

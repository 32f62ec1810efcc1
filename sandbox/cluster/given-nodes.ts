import type { DriverFacts, NodeFacts } from './driver-client.ts';

/** A node of `--node`. */
export interface GivenNode {
  readonly name: string;
  /** The topology of the driver on this node, as labels; empty: what the driver says itself. */
  readonly segments: Readonly<Record<string, string>>;
}

/** The socket of a node plugin; for all nodes without a name. */
export interface NodeSocket {
  readonly node?: string | undefined;
  readonly socketPath: string;
}

/** Tells what a node plugin would say on a node; undefined where nobody says anything. */
export type NodeFactsOf = (node: string) => NodeFacts | undefined;

/**
 * What each node has of a driver: the topology that was given, else the response of the node's own plugin, else that of
 * the driver's socket.
 *
 * @param plugins - the responses of node plugins, by node; under an empty text that for all nodes.
 */
export function nodeFactsOf(
  driver: DriverFacts,
  given: readonly GivenNode[],
  plugins: ReadonlyMap<string, NodeFacts>,
): NodeFactsOf {
  return (node) => {
    const said = plugins.get(node) ?? plugins.get('') ?? driver.node;
    const segments = given.find(({ name }) => name === node)?.segments ?? {};
    if (Object.keys(segments).length === 0) return said;
    return { id: plugins.get(node)?.id ?? node, segments };
  };
}

/** @throws {RangeError} when two nodes have one name. */
export function checkNames(nodes: readonly { readonly name: string }[]): void {
  const twice = nodes.find(({ name }, index) => nodes.findIndex((other) => other.name === name) < index);
  if (twice !== undefined) throw new RangeError(`${twice.name} is given twice`);
}

/** @throws {RangeError} for what is not NAME or NAME=KEY=VALUE,... */
export function parseNode(text: string): GivenNode {
  const [name = '', ...rest] = text.split('=');
  if (name === '') throw new RangeError(`${JSON.stringify(text)} has no name; give NAME=KEY=VALUE,...`);
  const pairs = rest.length === 0 ? [] : rest.join('=').split(',');
  return { name, segments: Object.fromEntries(pairs.map((pair) => keyAndValue(pair))) };
}

/** @throws {RangeError} for what has no key, or no `=`. */
export function keyAndValue(text: string): [string, string] {
  const end = text.indexOf('=');
  if (end < 1) throw new RangeError(`${JSON.stringify(text)} is not KEY=VALUE`);
  return [text.slice(0, end), text.slice(end + 1)];
}

/**
 * How the scheduler picks among the nodes a pod fits: the first by name, each in turn, the one with the
 * fewest pods, or at random from a seed.
 */
export type NodeChoicePolicy = 'first' | 'roundRobin' | 'spread' | { randomSeed: number };

/** Picks one of at least one node names, which come in order of name. */
export type NodeChoice = (names: readonly string[]) => string;

/** The choice for a policy; `podsOn` counts the pods assigned to a node. */
export function createNodeChoice(policy: NodeChoicePolicy, podsOn: (node: string) => number): NodeChoice {
  if (policy === 'first') return (names) => names[0]!;
  if (policy === 'spread') {
    return (names) => names.reduce((best, name) => (podsOn(name) < podsOn(best) ? name : best));
  }
  if (policy === 'roundRobin') return createRoundRobin();
  const random = createRandom(policy.randomSeed);
  return (names) => names[Math.floor(random() * names.length)]!;
}

function createRoundRobin(): NodeChoice {
  let last = '';
  return (names) => {
    last = names.find((name) => name > last) ?? names[0]!;
    return last;
  };
}

/** Mulberry32: small, and the same sequence for the same seed on every machine. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

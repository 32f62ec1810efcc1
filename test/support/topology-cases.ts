import type { ClusterName } from './topology-clusters.ts';

/** One case: a claim in a cluster, and the requirement, in the notation of the clusters. */
export interface TopologyCase {
  /** What the case shows. */
  name: string;
  /** Run through the whole program as well: each branch of the decisions and each failure once. */
  wholeProgram?: true;
  cluster: ClusterName;
  /** Default `testpvc`. */
  claim?: string;
  selected?: string;
  /** `--strict-topology`; default false. */
  strict?: boolean;
  /** `--immediate-topology`; default true. */
  immediate?: boolean;
  allowed?: string;
  /** What follows: */
  want:
    | { requisite: string; preferred: string }
    /** No requirement is sent. */
    | 'none'
    /** An error text; the attempt is repeated. */
    | { error: string }
    /** An error text; another node is to be selected. */
    | { gone: string };
}

/** The cases by what they are about. */
export const topologyCases: Record<string, readonly TopologyCase[]> = {
  'without a selected node and allowed topologies': [
    {
      name: 'nodes of one zone are one topology',
      wholeProgram: true,
      cluster: 'one zone',
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      name: 'each zone is listed once, and the name of the claim decides which is preferred',
      cluster: 'three zones',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'the claim of a StatefulSet prefers the hash of the set plus the ordinal',
      wholeProgram: true,
      cluster: 'three zones',
      claim: 'data-web-1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'the next ordinal of a set prefers the next zone, whatever its template',
      cluster: 'three zones',
      claim: 'logs-web-2',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'a name that does not end with an ordinal is hashed whole',
      cluster: 'three zones',
      claim: 'my-claim-x',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'the largest ordinal of 32 bits is added',
      cluster: 'three zones',
      claim: 'data-web-4294967295',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'an ordinal beyond 32 bits is hashed with the name',
      cluster: 'three zones',
      claim: 'data-web-4294967296',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'the name of the set may be empty',
      cluster: 'three zones',
      claim: 'data--1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'with two keys each topology has both',
      wholeProgram: true,
      cluster: 'four racks',
      claim: 'testpvcA-testset-1',
      want: {
        requisite: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
        preferred: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
      },
    },
    {
      name: 'a name before the ordinal without a template is hashed whole',
      cluster: 'four racks',
      claim: 'testset-2',
      want: {
        requisite: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
        preferred: '{R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4} {R=rA,Z=z1}',
      },
    },
    {
      name: 'with --immediate-topology=false nothing is sent',
      wholeProgram: true,
      cluster: 'three zones',
      immediate: false,
      want: 'none',
    },
    {
      name: '--strict-topology changes nothing without a selected node',
      cluster: 'three zones',
      strict: true,
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'keys that no node has as labels are an error',
      wholeProgram: true,
      cluster: 'no zone labels',
      want: { error: 'topologyKeys [[ex.com/zone]] were not found on any nodes' },
    },
    {
      name: 'nodes without the driver, or where it has no keys, do not count by their labels',
      wholeProgram: true,
      cluster: 'one node with keys',
      want: { requisite: '{Z=z3}', preferred: '{Z=z3}' },
    },
    {
      name: 'where nodes have different keys, those of each count',
      wholeProgram: true,
      cluster: 'different keys',
      want: { requisite: '{Z=z1} {R=rA,Z=z1}', preferred: '{Z=z1} {R=rA,Z=z1}' },
    },
    {
      name: 'a node counts also for a part of its keys, and not for more than it has',
      cluster: 'regions, one with zones',
      want: { requisite: '{G=us} {G=us,Z=z2}', preferred: '{G=us} {G=us,Z=z2}' },
    },
    {
      name: 'a node counts by the keys of its own CSINode alone',
      cluster: 'zones beside racks',
      want: { requisite: '{R=rB} {Z=z1}', preferred: '{R=rB} {Z=z1}' },
    },
    {
      name: 'keys that no node has as labels are left out beside others',
      cluster: 'zones beside missing racks',
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      name: 'several sets of keys that no node has as labels are all named, in order',
      cluster: 'no labels for several keys',
      want: {
        error: 'topologyKeys [[ex.com/rack] [ex.com/region ex.com/zone] [ex.com/zone]] were not found on any nodes',
      },
    },
    {
      name: 'a CSINode without Node adds its keys, and no topology',
      cluster: 'no nodes',
      want: { error: 'topologyKeys [[ex.com/zone]] were not found on any nodes' },
    },
    {
      name: 'no CSINode at all is an error',
      wholeProgram: true,
      cluster: 'no CSINodes',
      want: { error: 'no available topology found' },
    },
    {
      name: 'topologies are sorted by bytes',
      wholeProgram: true,
      cluster: 'zones to sort',
      want: { requisite: '{Z=Z9} {Z=z1} {Z=z10} {Z=z2}', preferred: '{Z=z10} {Z=z2} {Z=Z9} {Z=z1}' },
    },
    {
      name: 'nodes that lack one of the labels are left out',
      cluster: 'some labels missing',
      want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rA,Z=z1} {R=rB,Z=z2}' },
    },
    {
      name: 'keys are sorted, however the driver lists them',
      wholeProgram: true,
      cluster: 'keys in any order',
      want: {
        requisite: '{R=r1,G=us,Z=z1} {R=r2,G=us,Z=z1} {R=r2,G=us,Z=z2}',
        preferred: '{R=r2,G=us,Z=z2} {R=r1,G=us,Z=z1} {R=r2,G=us,Z=z1}',
      },
    },
  ],
  'without a selected node, with allowed topologies': [
    {
      name: 'one value is one topology, whatever --immediate-topology says',
      cluster: 'three zones',
      immediate: false,
      allowed: '(Z:z1)',
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      name: 'two values are two topologies',
      cluster: 'three zones',
      allowed: '(Z:z1|z2)',
      want: { requisite: '{Z=z1} {Z=z2}', preferred: '{Z=z1} {Z=z2}' },
    },
    {
      name: 'two expressions are one topology with two keys',
      cluster: 'no CSINodes',
      allowed: '(Z:z1 & R:rA)',
      want: { requisite: '{R=rA,Z=z1}', preferred: '{R=rA,Z=z1}' },
    },
    {
      name: 'values of two expressions are combined',
      wholeProgram: true,
      cluster: 'no CSINodes',
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    {
      name: 'two terms are two topologies',
      cluster: 'no CSINodes',
      allowed: '(Z:z1) or (R:rA)',
      want: { requisite: '{R=rA} {Z=z1}', preferred: '{R=rA} {Z=z1}' },
    },
    {
      name: 'a value in two terms is sent once',
      cluster: 'no CSINodes',
      allowed: '(Z:z1|z2) or (Z:z2|z3)',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      name: 'a term with fewer keys is sent beside those with more',
      cluster: 'no CSINodes',
      allowed: '(Z:z1) or (Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{Z=z1} {R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {Z=z1} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    {
      name: 'a combination in two terms is sent once',
      cluster: 'no CSINodes',
      allowed: '(Z:z1 & R:rB) or (Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    { name: 'an empty term sends nothing', wholeProgram: true, cluster: 'three zones', allowed: '()', want: 'none' },
    {
      name: 'an empty term beside another adds nothing',
      cluster: 'three zones',
      allowed: '() or (Z:z2)',
      want: { requisite: '{Z=z2}', preferred: '{Z=z2}' },
    },
    {
      name: 'the claim of a StatefulSet prefers one of the allowed topologies by its ordinal',
      wholeProgram: true,
      cluster: 'four racks',
      claim: 'testpvcB-testset-2',
      allowed: '(Z:z2 & R:rB) or (Z:z1 & R:rA)',
      want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rB,Z=z2} {R=rA,Z=z1}' },
    },
    {
      name: 'a value that no node has is sent all the same',
      cluster: 'no CSINodes',
      allowed: '(Z:z9)',
      want: { requisite: '{Z=z9}', preferred: '{Z=z9}' },
    },
    {
      name: 'terms are sorted before the claim chooses the preferred one',
      cluster: 'no CSINodes',
      claim: 'data-web-1',
      allowed: '(Z:z3) or (Z:z2) or (Z:z1)',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'a first expression without values is left out',
      wholeProgram: true,
      cluster: 'no CSINodes',
      allowed: '(Z:∅ & R:rA)',
      want: { requisite: '{R=rA}', preferred: '{R=rA}' },
    },
    {
      name: 'an expression without values behind another leaves nothing',
      wholeProgram: true,
      cluster: 'no CSINodes',
      allowed: '(Z:z1 & R:∅)',
      want: 'none',
    },
  ],
  'with a selected node': [
    {
      name: 'the node’s zone comes first',
      cluster: 'three zones',
      selected: 'n1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z1} {Z=z2} {Z=z3}' },
    },
    {
      name: 'the zones after the node’s follow in their order',
      cluster: 'three zones',
      selected: 'n2',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: '--immediate-topology=false changes nothing for a selected node',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n2',
      immediate: false,
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'the name of the claim changes nothing for a selected node',
      cluster: 'three zones',
      selected: 'n2',
      claim: 'data-web-1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      name: 'strict: the node’s zone alone',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n1',
      strict: true,
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      name: 'two keys: the node’s topology comes first',
      wholeProgram: true,
      cluster: 'racks across zones',
      selected: 'n1',
      want: { requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1}', preferred: '{R=rA,Z=z2} {R=rB,Z=z1} {R=rA,Z=z1}' },
    },
    {
      name: 'the keys of the node decide, here one',
      cluster: 'different keys',
      selected: 'n1',
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      name: 'the keys of the node decide, here two',
      cluster: 'different keys',
      selected: 'n2',
      want: { requisite: '{R=rA,Z=z1}', preferred: '{R=rA,Z=z1}' },
    },
    {
      name: 'strict with three keys: the node’s topology alone',
      cluster: 'keys in any order',
      selected: 'n1',
      strict: true,
      want: { requisite: '{R=r1,G=us,Z=z1}', preferred: '{R=r1,G=us,Z=z1}' },
    },
    {
      name: 'a node without the labels of its keys is an error',
      wholeProgram: true,
      cluster: 'no zone labels',
      selected: 'n1',
      want: {
        error:
          'topology labels from selected node map[foo:bar] does not match topology keys from CSINode [ex.com/zone]',
      },
    },
    {
      name: 'a node with another driver only has no keys',
      wholeProgram: true,
      cluster: 'one node with keys',
      selected: 'n1',
      want: { error: 'no topology key found for node n1' },
    },
    {
      name: 'a node with null keys has no keys',
      cluster: 'one node with keys',
      selected: 'n2',
      want: { error: 'no topology key found for node n2' },
    },
    {
      name: 'other nodes without keys do not count by their labels',
      wholeProgram: true,
      cluster: 'one node with keys',
      selected: 'n3',
      want: { requisite: '{Z=z3}', preferred: '{Z=z3}' },
    },
    {
      name: 'other nodes with more keys count for those of the selected one',
      cluster: 'regions, one with zones',
      selected: 'n1',
      want: { requisite: '{G=us}', preferred: '{G=us}' },
    },
    {
      name: 'other nodes with fewer keys do not count, though they have the labels',
      cluster: 'regions, one with zones',
      selected: 'n2',
      want: { requisite: '{G=us,Z=z2}', preferred: '{G=us,Z=z2}' },
    },
    {
      name: 'a node without CSINode asks for another node',
      wholeProgram: true,
      cluster: 'no CSINodes',
      selected: 'n1',
      want: { gone: 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found' },
    },
    {
      name: 'a CSINode without Node asks for another node',
      wholeProgram: true,
      cluster: 'no nodes',
      selected: 'n1',
      want: { gone: 'failed to get selected Node n1: node "n1" not found' },
    },
    {
      name: 'an unknown node asks for another node',
      cluster: 'three zones',
      selected: 'n9',
      want: { gone: 'failed to get selected CSINode n9: csinode.storage.k8s.io "n9" not found' },
    },
    {
      name: 'a node that lacks one label is an error',
      wholeProgram: true,
      cluster: 'some labels missing',
      selected: 'n2',
      want: {
        error:
          'topology labels from selected node map[ex.com/zone:z2] does not match topology keys from CSINode [ex.com/zone ex.com/rack]',
      },
    },
    {
      name: 'nodes that lack a label are left out beside the selected one',
      cluster: 'some labels missing',
      selected: 'n4',
      want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rB,Z=z2} {R=rA,Z=z1}' },
    },
    {
      name: 'an empty label value is a value',
      wholeProgram: true,
      cluster: 'an empty zone',
      selected: 'n1',
      want: { requisite: '{Z=} {Z=z1}', preferred: '{Z=} {Z=z1}' },
    },
  ],
  'with a selected node and allowed topologies': [
    {
      name: 'the node’s topology comes first of the combinations',
      wholeProgram: true,
      cluster: 'racks across zones',
      selected: 'n1',
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1}',
      },
    },
    {
      name: 'strict: the node’s topology alone, out of several keys',
      cluster: 'racks across zones',
      selected: 'n1',
      strict: true,
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: { requisite: '{R=rA,Z=z2}', preferred: '{R=rA,Z=z2}' },
    },
    {
      name: 'a node outside of the allowed topologies is an error',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n2',
      allowed: '(Z:z1)',
      want: { error: 'topology [{ex.com/zone z2}] from selected node "n2" is not in requisite: [[{ex.com/zone z1}]]' },
    },
    {
      name: 'strict: a node outside of the allowed topologies is an error',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n2',
      strict: true,
      allowed: '(Z:z1)',
      want: {
        error: `selected node '"n2"' topology '[{ex.com/zone z2}]' is not in allowed topologies: [[{ex.com/zone z1}]]`,
      },
    },
    {
      name: 'fewer allowed keys than the node has: its allowed part comes first',
      cluster: 'racks across zones',
      selected: 'n1',
      allowed: '(Z:z1|z2)',
      want: { requisite: '{Z=z1} {Z=z2}', preferred: '{Z=z2} {Z=z1}' },
    },
    {
      name: 'strict: fewer allowed keys than the node has: all of its keys are sent',
      wholeProgram: true,
      cluster: 'racks across zones',
      selected: 'n1',
      strict: true,
      allowed: '(Z:z1|z2)',
      want: { requisite: '{R=rA,Z=z2}', preferred: '{R=rA,Z=z2}' },
    },
    {
      name: 'more allowed keys than the node has are an error',
      cluster: 'three zones',
      selected: 'n1',
      allowed: '(Z:z1 & R:rA)',
      want: {
        error:
          'topology [{ex.com/zone z1}] from selected node "n1" is not in requisite: [[{ex.com/rack rA} {ex.com/zone z1}]]',
      },
    },
    {
      name: 'the term that the node fits comes first',
      cluster: 'three zones',
      selected: 'n1',
      allowed: '(Z:z1) or (R:rA)',
      want: { requisite: '{R=rA} {Z=z1}', preferred: '{Z=z1} {R=rA}' },
    },
    {
      name: 'an empty allowed term sends nothing',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n1',
      allowed: '()',
      want: 'none',
    },
    {
      name: 'strict: an empty allowed term is an error',
      wholeProgram: true,
      cluster: 'three zones',
      selected: 'n1',
      strict: true,
      allowed: '()',
      want: { error: `selected node '"n1"' topology '[{ex.com/zone z1}]' is not in allowed topologies: []` },
    },
    {
      name: 'of several terms that the node fits the first is preferred',
      cluster: 'keys in any order',
      selected: 'n3',
      allowed: '(G:us) or (Z:z1)',
      want: { requisite: '{G=us} {Z=z1}', preferred: '{G=us} {Z=z1}' },
    },
    {
      name: 'two of the node’s three keys are allowed',
      cluster: 'keys in any order',
      selected: 'n1',
      allowed: '(R:r1 & G:us)',
      want: { requisite: '{R=r1,G=us}', preferred: '{R=r1,G=us}' },
    },
    {
      name: 'strict: two of the node’s three keys are allowed, all three are sent',
      cluster: 'keys in any order',
      selected: 'n1',
      strict: true,
      allowed: '(R:r1 & G:us)',
      want: { requisite: '{R=r1,G=us,Z=z1}', preferred: '{R=r1,G=us,Z=z1}' },
    },
    {
      name: 'a node without CSINode asks for another node, allowed topologies or not',
      wholeProgram: true,
      cluster: 'no CSINodes',
      selected: 'n1',
      allowed: '(Z:z1|z2)',
      want: { gone: 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found' },
    },
  ],
};

import type { ClusterName } from './topology-clusters.ts';

/** One case: a claim in a cluster, and the requirement, in the notation of the clusters. */
export interface TopologyCase {
  id: string;
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

/** Cases T01 to T66 by what they are about. */
export const topologyCases: Record<string, readonly TopologyCase[]> = {
  'without a selected node and allowed topologies': [
    { id: 'T01', cluster: 'C1', want: { requisite: '{Z=z1}', preferred: '{Z=z1}' } },
    { id: 'T02', cluster: 'C2', want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' } },
    {
      id: 'T03',
      cluster: 'C2',
      claim: 'data-web-1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      id: 'T04',
      cluster: 'C2',
      claim: 'logs-web-2',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      id: 'T05',
      cluster: 'C2',
      claim: 'my-claim-x',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      id: 'T06',
      cluster: 'C2',
      claim: 'data-web-4294967295',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      id: 'T07',
      cluster: 'C2',
      claim: 'data-web-4294967296',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      id: 'T08',
      cluster: 'C2',
      claim: 'data--1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      id: 'T09',
      cluster: 'C3',
      claim: 'testpvcA-testset-1',
      want: {
        requisite: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
        preferred: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
      },
    },
    {
      id: 'T10',
      cluster: 'C3',
      claim: 'testset-2',
      want: {
        requisite: '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}',
        preferred: '{R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4} {R=rA,Z=z1}',
      },
    },
    { id: 'T11', cluster: 'C2', immediate: false, want: 'none' },
    {
      id: 'T12',
      cluster: 'C2',
      strict: true,
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    { id: 'T13', cluster: 'C6', want: { error: 'topologyKeys [ex.com/zone] were not found on any nodes' } },
    { id: 'T14', cluster: 'C7', want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' } },
    { id: 'T15', cluster: 'C8', want: { error: 'no available topology found' } },
    {
      id: 'T16',
      cluster: 'C11',
      want: { requisite: '{Z=Z9} {Z=z1} {Z=z10} {Z=z2}', preferred: '{Z=z10} {Z=z2} {Z=Z9} {Z=z1}' },
    },
    { id: 'T17', cluster: 'C12', want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rA,Z=z1} {R=rB,Z=z2}' } },
    {
      id: 'T18',
      cluster: 'C13',
      want: {
        requisite: '{R=r1,G=us,Z=z1} {R=r2,G=us,Z=z1} {R=r2,G=us,Z=z2}',
        preferred: '{R=r2,G=us,Z=z2} {R=r1,G=us,Z=z1} {R=r2,G=us,Z=z1}',
      },
    },
  ],
  'without a selected node, with allowed topologies': [
    {
      id: 'T19',
      cluster: 'C2',
      immediate: false,
      allowed: '(Z:z1)',
      want: { requisite: '{Z=z1}', preferred: '{Z=z1}' },
    },
    {
      id: 'T20',
      cluster: 'C2',
      allowed: '(Z:z1|z2)',
      want: { requisite: '{Z=z1} {Z=z2}', preferred: '{Z=z1} {Z=z2}' },
    },
    {
      id: 'T21',
      cluster: 'C8',
      allowed: '(Z:z1 & R:rA)',
      want: { requisite: '{R=rA,Z=z1}', preferred: '{R=rA,Z=z1}' },
    },
    {
      id: 'T22',
      cluster: 'C8',
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    {
      id: 'T23',
      cluster: 'C8',
      allowed: '(Z:z1) or (R:rA)',
      want: { requisite: '{R=rA} {Z=z1}', preferred: '{R=rA} {Z=z1}' },
    },
    {
      id: 'T24',
      cluster: 'C8',
      allowed: '(Z:z1|z2) or (Z:z2|z3)',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      id: 'T25',
      cluster: 'C8',
      allowed: '(Z:z1) or (Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{Z=z1} {R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {Z=z1} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    {
      id: 'T26',
      cluster: 'C8',
      allowed: '(Z:z1 & R:rB) or (Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1} {R=rA,Z=z2}',
      },
    },
    { id: 'T27', cluster: 'C2', allowed: '()', want: 'none' },
    { id: 'T28', cluster: 'C2', allowed: '() or (Z:z2)', want: { requisite: '{Z=z2}', preferred: '{Z=z2}' } },
    {
      id: 'T29',
      cluster: 'C3',
      claim: 'testpvcB-testset-2',
      allowed: '(Z:z2 & R:rB) or (Z:z1 & R:rA)',
      want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rB,Z=z2} {R=rA,Z=z1}' },
    },
    { id: 'T30', cluster: 'C8', allowed: '(Z:z9)', want: { requisite: '{Z=z9}', preferred: '{Z=z9}' } },
    {
      id: 'T31',
      cluster: 'C8',
      claim: 'data-web-1',
      allowed: '(Z:z3) or (Z:z2) or (Z:z1)',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    { id: 'T32', cluster: 'C8', allowed: '(Z:∅ & R:rA)', want: { requisite: '{R=rA}', preferred: '{R=rA}' } },
    { id: 'T33', cluster: 'C8', allowed: '(Z:z1 & R:∅)', want: 'none' },
  ],
  'with a selected node': [
    {
      id: 'T34',
      cluster: 'C2',
      selected: 'n1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z1} {Z=z2} {Z=z3}' },
    },
    {
      id: 'T35',
      cluster: 'C2',
      selected: 'n2',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      id: 'T36',
      cluster: 'C2',
      selected: 'n2',
      immediate: false,
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    {
      id: 'T37',
      cluster: 'C2',
      selected: 'n2',
      claim: 'data-web-1',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z2} {Z=z3} {Z=z1}' },
    },
    { id: 'T38', cluster: 'C2', selected: 'n1', strict: true, want: { requisite: '{Z=z1}', preferred: '{Z=z1}' } },
    {
      id: 'T39',
      cluster: 'C4',
      selected: 'n1',
      want: { requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1}', preferred: '{R=rA,Z=z2} {R=rB,Z=z1} {R=rA,Z=z1}' },
    },
    { id: 'T40', cluster: 'C5', selected: 'n1', want: { requisite: '{Z=z1}', preferred: '{Z=z1}' } },
    { id: 'T41', cluster: 'C5', selected: 'n2', want: { requisite: '{R=rA,Z=z1}', preferred: '{R=rA,Z=z1}' } },
    {
      id: 'T42',
      cluster: 'C13',
      selected: 'n1',
      strict: true,
      want: { requisite: '{R=r1,G=us,Z=z1}', preferred: '{R=r1,G=us,Z=z1}' },
    },
    {
      id: 'T43',
      cluster: 'C6',
      selected: 'n1',
      want: {
        error:
          'topology labels from selected node map[foo:bar] does not match topology keys from CSINode [ex.com/zone]',
      },
    },
    { id: 'T44', cluster: 'C7', selected: 'n1', want: { error: 'no topology key found for node n1' } },
    { id: 'T45', cluster: 'C7', selected: 'n2', want: { error: 'no topology key found for node n2' } },
    {
      id: 'T46',
      cluster: 'C7',
      selected: 'n3',
      want: { requisite: '{Z=z1} {Z=z2} {Z=z3}', preferred: '{Z=z3} {Z=z1} {Z=z2}' },
    },
    {
      id: 'T47',
      cluster: 'C8',
      selected: 'n1',
      want: { gone: 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found' },
    },
    {
      id: 'T48',
      cluster: 'C10',
      selected: 'n1',
      want: {
        error: 'topology labels from selected node map[] does not match topology keys from CSINode [ex.com/zone]',
      },
    },
    {
      id: 'T49',
      cluster: 'C2',
      selected: 'n9',
      want: { gone: 'failed to get selected CSINode n9: csinode.storage.k8s.io "n9" not found' },
    },
    {
      id: 'T50',
      cluster: 'C12',
      selected: 'n2',
      want: {
        error:
          'topology labels from selected node map[ex.com/zone:z2] does not match topology keys from CSINode [ex.com/zone ex.com/rack]',
      },
    },
    {
      id: 'T51',
      cluster: 'C12',
      selected: 'n4',
      want: { requisite: '{R=rA,Z=z1} {R=rB,Z=z2}', preferred: '{R=rB,Z=z2} {R=rA,Z=z1}' },
    },
    { id: 'T52', cluster: 'C14', selected: 'n1', want: { requisite: '{Z=} {Z=z1}', preferred: '{Z=} {Z=z1}' } },
  ],
  'with a selected node and allowed topologies': [
    {
      id: 'T53',
      cluster: 'C4',
      selected: 'n1',
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: {
        requisite: '{R=rA,Z=z1} {R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2}',
        preferred: '{R=rA,Z=z2} {R=rB,Z=z1} {R=rB,Z=z2} {R=rA,Z=z1}',
      },
    },
    {
      id: 'T54',
      cluster: 'C4',
      selected: 'n1',
      strict: true,
      allowed: '(Z:z1|z2 & R:rA|rB)',
      want: { requisite: '{R=rA,Z=z2}', preferred: '{R=rA,Z=z2}' },
    },
    {
      id: 'T55',
      cluster: 'C2',
      selected: 'n2',
      allowed: '(Z:z1)',
      want: { error: 'topology [{ex.com/zone z2}] from selected node "n2" is not in requisite: [[{ex.com/zone z1}]]' },
    },
    {
      id: 'T56',
      cluster: 'C2',
      selected: 'n2',
      strict: true,
      allowed: '(Z:z1)',
      want: {
        error: `selected node '"n2"' topology '[{ex.com/zone z2}]' is not in allowed topologies: [[{ex.com/zone z1}]]`,
      },
    },
    {
      id: 'T57',
      cluster: 'C4',
      selected: 'n1',
      allowed: '(Z:z1|z2)',
      want: { requisite: '{Z=z1} {Z=z2}', preferred: '{Z=z2} {Z=z1}' },
    },
    {
      id: 'T58',
      cluster: 'C4',
      selected: 'n1',
      strict: true,
      allowed: '(Z:z1|z2)',
      want: { requisite: '{R=rA,Z=z2}', preferred: '{R=rA,Z=z2}' },
    },
    {
      id: 'T59',
      cluster: 'C2',
      selected: 'n1',
      allowed: '(Z:z1 & R:rA)',
      want: {
        error:
          'topology [{ex.com/zone z1}] from selected node "n1" is not in requisite: [[{ex.com/rack rA} {ex.com/zone z1}]]',
      },
    },
    {
      id: 'T60',
      cluster: 'C2',
      selected: 'n1',
      allowed: '(Z:z1) or (R:rA)',
      want: { requisite: '{R=rA} {Z=z1}', preferred: '{Z=z1} {R=rA}' },
    },
    { id: 'T61', cluster: 'C2', selected: 'n1', allowed: '()', want: 'none' },
    {
      id: 'T62',
      cluster: 'C2',
      selected: 'n1',
      strict: true,
      allowed: '()',
      want: { error: `selected node '"n1"' topology '[{ex.com/zone z1}]' is not in allowed topologies: []` },
    },
    {
      id: 'T63',
      cluster: 'C13',
      selected: 'n3',
      allowed: '(G:us) or (Z:z1)',
      want: { requisite: '{G=us} {Z=z1}', preferred: '{G=us} {Z=z1}' },
    },
    {
      id: 'T64',
      cluster: 'C13',
      selected: 'n1',
      allowed: '(R:r1 & G:us)',
      want: { requisite: '{R=r1,G=us}', preferred: '{R=r1,G=us}' },
    },
    {
      id: 'T65',
      cluster: 'C13',
      selected: 'n1',
      strict: true,
      allowed: '(R:r1 & G:us)',
      want: { requisite: '{R=r1,G=us,Z=z1}', preferred: '{R=r1,G=us,Z=z1}' },
    },
    {
      id: 'T66',
      cluster: 'C8',
      selected: 'n1',
      allowed: '(Z:z1|z2)',
      want: { gone: 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found' },
    },
  ],
};

/** A DaemonSet whose sidecars do not know that there is one on each node, or leave something behind with a node. */
import { defineFinding, type Found } from './preflight-finding.ts';

export const everyNode = defineFinding({
  name: 'every-node',
  check({ workload, arguments: { values } }) {
    const isOnEach = workload.kind === 'DaemonSet';
    if (isOnEach && !values['node-deployment'] && !values['leader-election']) {
      return [
        {
          level: 'warning',
          message: 'A DaemonSet without --node-deployment and --leader-election: each node provisions every claim.',
          cure: 'Set --node-deployment, with the variable NODE_NAME, if volumes are local to nodes; else --leader-election.',
        },
      ];
    }
    if (!values['node-deployment']) return [];
    if (isOnEach) return values['enable-capacity'] ? capacityOfGoneNodes(values['capacity-ownerref-level']) : [];
    return [
      {
        level: 'note',
        message: `--node-deployment in a ${workload.kind}: it serves only claims for the nodes on which its Pods run.`,
      },
    ];
  },
});

/** Each sidecar sees the capacity objects of its own node only, and of the possible owners only the Pod goes with the node. */
function capacityOfGoneNodes(ownerLevel: number): Found[] {
  if (ownerLevel === 0) return [];
  const stay = ownerLevel < 0 ? 'have no owner and stay' : 'stay as long as their owner, which is not the Pod';
  return [
    {
      level: 'warning',
      message: `--node-deployment with --capacity-ownerref-level=${ownerLevel}: the CSIStorageCapacity objects of a node that is gone ${stay}.`,
      cure: 'Set --capacity-ownerref-level=0 where nodes come and go: the objects then go with the Pod of the node, and are recreated when it is replaced.',
    },
  ];
}

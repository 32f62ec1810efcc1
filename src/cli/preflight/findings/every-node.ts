/** A DaemonSet whose sidecars do not know that there is one on each node. */
import { defineFinding } from './preflight-finding.ts';

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
    if (isOnEach || !values['node-deployment']) return [];
    return [
      {
        level: 'note',
        message: `--node-deployment in a ${workload.kind}: it serves only claims for the nodes on which its Pods run.`,
      },
    ];
  },
});

/** Checks for processes that may work at the same time: replicas, rolling updates, nodes, other sidecars of the Pod. */
import { nameList } from '../../base/name-list.ts';
import type { Workload } from './find-sidecars.ts';
import type { Check, Found } from './preflight-finding.ts';
import { readArguments } from './sidecar-facts.ts';

export const replicaChecks = {
  /** Two processes may provision for one driver at the same time. */
  'two-at-once'({ workload, arguments: { values } }) {
    if (values['leader-election'] || values['node-deployment']) return undefined;
    const { replicas = 1 } = workload;
    if (replicas > 1) {
      return {
        level: 'warning',
        message: `${replicas} replicas without --leader-election: all of them provision the same claims, with the Go sidecar as well.`,
        cure: 'Turn on --leader-election, with its rule for leases, or set replicas to 1.',
      };
    }
    if (replicas === 0 || !overlaps(workload)) return undefined;
    return {
      level: 'warning',
      message:
        'Without --leader-election, a rolling update starts the new Pod before the old one has ended: the Go sidecar and this one would provision the same claims meanwhile.',
      cure: `Set strategy: {type: Recreate}, or maxSurge: 0, before the image is changed, or turn on --leader-election, with its rule for leases.`,
    };
  },

  /** Replicas with the same holder identity in the Lease, which is the host name. */
  'shared-host-name'({ workload, arguments: { values } }) {
    const { replicas = 1 } = workload;
    const why = whyOneHostName(workload);
    if (!values['leader-election'] || values['node-deployment'] || why === undefined) return undefined;
    if (replicas === 1 && overlaps(workload)) {
      return {
        level: 'note',
        message: `A rolling update starts the new Pod before the old one has ended: the Go sidecar then takes over the Lease of the one that still works. This sidecar waits as a standby until the Lease is released.`,
      };
    }
    if (replicas < 2) return undefined;
    return {
      level: 'warning',
      message: `${replicas} replicas with leader election, ${why}: the identity in the Lease is the host name, so that two Go sidecars work at the same time. With this sidecar the second one waits as a standby, and reports it.`,
      cure: 'Give each Pod a host name of its own: without hostNetwork and hostname it is that of the Pod. Or allow one Pod on a node, with a required podAntiAffinity.',
    };
  },

  /** A DaemonSet whose sidecars do not know that there is one on each node, or leave something behind with a node. */
  'every-node'({ workload, arguments: { values } }) {
    const isOnEach = workload.kind === 'DaemonSet';
    if (isOnEach && !values['node-deployment'] && !values['leader-election']) {
      return {
        level: 'warning',
        message: 'A DaemonSet without --node-deployment and --leader-election: each node provisions every claim.',
        cure: 'Set --node-deployment, with the variable NODE_NAME, if volumes are local to nodes; else --leader-election.',
      };
    }
    if (!values['node-deployment']) return undefined;
    if (isOnEach) return values['enable-capacity'] ? capacityOfGoneNodes(values['capacity-ownerref-level']) : undefined;
    return {
      level: 'note',
      message: `--node-deployment in a ${workload.kind}: it serves only claims for the nodes on which its Pods run.`,
    };
  },

  'several-provisioners'({ container, workload, sidecars, arguments: { values } }) {
    const others = sidecars.filter((each) => each.workload === workload && each.container !== container);
    if (others.length === 0) return undefined;
    const names = others.map((each) => each.container.name);
    const read = others.map((each) => readArguments(each.container, workload.namespace).values);
    const found: Found[] = [
      {
        level: 'note',
        message: `The Pod has another container that is the Go sidecar: ${nameList(names, 5)}. The image of each can be changed by itself, and either may stay as it is.`,
      },
    ];
    if (read.some((each) => each['csi-address'] === values['csi-address'])) {
      found.push({
        level: 'warning',
        message: `Two sidecars of the Pod have the same --csi-address, ${values['csi-address']}, and would provision the same claims.`,
        cure: 'Remove one of them.',
      });
    }
    return found;
  },
} satisfies Record<string, Check>;

/** Whether a rolling update starts a Pod before the old one has ended (Kubernetes page "Deployments", section "Strategy"). */
function overlaps({ kind, manifest }: Workload): boolean {
  if (kind !== 'Deployment') return false;
  const strategy = manifest.fields.partAt('spec', 'strategy');
  if (strategy?.text('type') === 'Recreate') return false;
  const surge = strategy?.part('rollingUpdate')?.textOrNumber('maxSurge') ?? '25%';
  return Number.parseInt(String(surge), 10) !== 0;
}

function whyOneHostName({ kind, pod }: Workload): string | undefined {
  if (pod.flag('hostNetwork') === true) {
    return isApart(pod) ? undefined : 'with hostNetwork: two on one node have its host name';
  }
  // a StatefulSet sets it to the name of the Pod
  return kind !== 'StatefulSet' && (pod.text('hostname') ?? '') !== '' ? 'with one hostname for all' : undefined;
}

/** Whether no two Pods are scheduled on one node, as far as the manifest says. */
function isApart(pod: Workload['pod']): boolean {
  const terms = pod.partAt('affinity', 'podAntiAffinity')?.parts('requiredDuringSchedulingIgnoredDuringExecution');
  return terms?.some((term) => term.text('topologyKey') === 'kubernetes.io/hostname') ?? false;
}

/** Each sidecar sees the capacity objects of its own node only, and of the possible owners only the Pod goes with the node. */
function capacityOfGoneNodes(ownerLevel: number): Found | undefined {
  if (ownerLevel === 0) return undefined;
  const stay = ownerLevel < 0 ? 'have no owner and stay' : 'stay as long as their owner, which is not the Pod';
  return {
    level: 'warning',
    message: `--node-deployment with --capacity-ownerref-level=${ownerLevel}: the CSIStorageCapacity objects of a node that is gone ${stay}.`,
    cure: 'Set --capacity-ownerref-level=0 where nodes come and go: the objects then go with the Pod of the node, and are recreated when it is replaced.',
  };
}

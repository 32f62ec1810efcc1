/** What the sidecar asks of the Kubernetes API, for which of its features, and what is lost without it. */
import { storageCapacities } from '../../capacity/storage-capacity.ts';
import { volumeAttachments } from '../../csi/attachments.ts';
import { secrets } from '../../csi/secrets/read-secret.ts';
import { volumeSnapshotContents, volumeSnapshots } from '../../csi/sources/snapshot-source.ts';
import { csiNodeResource, nodeResource } from '../../csi/topology/topology-nodes.ts';
import { volumeAttributesClasses } from '../../csi/volume-attributes-class.ts';
import { pods } from '../../explain/cluster-objects.ts';
import { events } from '../../kube/events/event-recorder.ts';
import { leases, lockVerbs } from '../../kube/election/lease-record.ts';
import type { Resource } from '../../kube/kube-object.ts';
import { persistentVolumeClaims, persistentVolumes, referenceGrants, storageClasses } from '../../provision/objects.ts';
import type { Namespace } from './access.ts';
import {
  attachesVolumes,
  capacityState,
  electionState,
  type FeatureState,
  goneNodesState,
  journalState,
  namesAttributesClasses,
  namesSecrets,
  off,
  ownerState,
  restoresSnapshots,
  usesTopology,
} from './feature-state.ts';
import type { FindingLevel } from './preflight-finding.ts';
import type { SidecarFacts } from './sidecar-facts.ts';

/** What rights are needed for. */
export const rightsFeatures = [
  'provisioning',
  'events',
  'journal',
  'leader-election',
  'topology',
  'capacity',
  'attachments',
  'snapshots',
  'snapshot-protection',
  'clones',
  'attributes-classes',
  'cross-namespace-sources',
  'secrets',
  'node-deployment',
] as const;

export type RightsFeature = (typeof rightsFeatures)[number];

/** Verbs on one resource that are needed together. */
export interface NeededRights {
  feature: RightsFeature;
  resource: Resource;
  verbs: readonly string[];
  /** Where it is needed: in the namespace of the Lease, in that of the capacity objects, somewhere, or everywhere. Default: everywhere. */
  where?: 'lock' | 'capacity' | 'anywhere';
  /** Default: always. */
  state?: (facts: SidecarFacts) => FeatureState;
  /** How much it matters while the feature is on. Default: `must`. */
  level?: FindingLevel;
  /** What is lost, as a clause without a full stop. */
  without: string;
  /** Whether the Go sidecar needs it as well, from which release on. Default: it does, from the first one on. */
  go?: 'needs it since v5.0' | 'needs it since v6.2' | 'does not need it';
}

const cached = ['list', 'watch'] as const;

/** With the same verbs as the manifests of `deploy/`, which a test compares. */
export const neededRights: readonly NeededRights[] = [
  {
    feature: 'provisioning',
    resource: persistentVolumes,
    verbs: ['list', 'watch', 'create', 'delete'],
    without: 'no volume is provisioned or deleted',
  },
  {
    feature: 'provisioning',
    resource: persistentVolumes,
    verbs: ['patch'],
    without:
      'a volume stays in the phase Terminating once its storage is deleted, since its finalizer cannot be removed',
    go: 'needs it since v5.0',
  },
  {
    feature: 'provisioning',
    resource: persistentVolumeClaims,
    verbs: cached,
    without: 'no claim is provisioned',
  },
  {
    feature: 'provisioning',
    resource: persistentVolumeClaims,
    verbs: ['update'],
    without: 'a claim whose node has no room keeps that node, and no claim is cloned',
  },
  {
    feature: 'provisioning',
    resource: persistentVolumeClaims,
    verbs: ['get'],
    without:
      'a claim whose node has no room keeps that node, no claim is cloned, and what was created for a claim that is gone is not deleted',
    go: 'does not need it',
  },
  {
    feature: 'provisioning',
    resource: storageClasses,
    verbs: cached,
    without: 'no claim is provisioned',
  },
  {
    feature: 'provisioning',
    resource: storageClasses,
    verbs: ['get'],
    level: 'note',
    without:
      'a claim that is older than its class may be reported as one without a class, and each failed read is logged',
    go: 'does not need it',
  },
  {
    feature: 'events',
    resource: events,
    verbs: ['create', 'patch'],
    level: 'warning',
    without: 'users do not see why a claim waits',
  },
  {
    feature: 'journal',
    resource: leases,
    verbs: lockVerbs,
    where: 'lock',
    state: journalState,
    level: 'warning',
    without:
      'nothing is recorded, so a crash may leave volumes behind in the storage, as with the Go sidecar, and the log reports that',
    go: 'does not need it',
  },
  {
    feature: 'leader-election',
    resource: leases,
    verbs: lockVerbs,
    where: 'lock',
    state: electionState,
    without: 'nobody becomes leader, and nothing is provisioned',
  },
  {
    feature: 'leader-election',
    resource: leases,
    verbs: cached,
    where: 'lock',
    state: electionState,
    level: 'note',
    without: 'a standby polls the Lease instead of watching it, as the Go sidecar does, so that it takes over later',
    go: 'does not need it',
  },
  ...[nodeResource, csiNodeResource].map((resource): NeededRights => ({
    feature: 'topology',
    resource,
    verbs: cached,
    state: usesTopology,
    without: 'no claim is provisioned for a driver with topology',
  })),
  ...[nodeResource, csiNodeResource].map((resource): NeededRights => ({
    feature: 'capacity',
    resource,
    verbs: cached,
    state: (facts) => (facts.arguments.config?.nodeDeployment ? off : capacityState(facts)),
    without: 'no storage capacity is published',
  })),
  {
    feature: 'capacity',
    resource: storageCapacities,
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    where: 'capacity',
    state: capacityState,
    without: 'no storage capacity is published',
  },
  {
    feature: 'capacity',
    resource: pods,
    verbs: ['get'],
    where: 'capacity',
    state: (facts) => ownerState(facts, 0),
    without: 'the process does not start, since the owner of the capacity objects cannot be found',
  },
  {
    feature: 'capacity',
    resource: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', namespaced: true },
    verbs: ['get'],
    where: 'capacity',
    state: (facts) => (facts.workload.kind === 'Deployment' ? ownerState(facts, 2) : off),
    without: 'the process does not start, since the owner of the capacity objects cannot be found',
  },
  {
    feature: 'attachments',
    resource: volumeAttachments,
    verbs: cached,
    state: attachesVolumes,
    without: 'no volume of a driver with PUBLISH_UNPUBLISH_VOLUME is deleted',
  },
  ...[volumeSnapshots, volumeSnapshotContents].map((resource): NeededRights => ({
    feature: 'snapshots',
    resource,
    verbs: ['get'],
    state: restoresSnapshots,
    level: 'warning',
    without: 'no snapshot is restored',
  })),
  {
    feature: 'snapshot-protection',
    resource: volumeSnapshots,
    verbs: ['update', ...cached],
    state: restoresSnapshots,
    level: 'note',
    without: 'a snapshot can be deleted while it is restored',
    go: 'needs it since v6.2',
  },
  {
    feature: 'clones',
    resource: persistentVolumes,
    verbs: ['get'],
    state: () => ({ state: 'depends', why: 'a claim names another claim as its source' }),
    level: 'warning',
    without: 'no claim is cloned',
  },
  {
    feature: 'attributes-classes',
    resource: volumeAttributesClasses,
    verbs: ['get'],
    state: namesAttributesClasses,
    level: 'warning',
    without: 'a claim that names a VolumeAttributesClass is not provisioned',
  },
  {
    feature: 'cross-namespace-sources',
    resource: referenceGrants,
    verbs: cached,
    state: ({ arguments: { config } }) =>
      config?.featureGates.crossNamespaceVolumeDataSource === true
        ? { state: 'on', why: '--feature-gates=CrossNamespaceVolumeDataSource=true' }
        : off,
    without: 'no claim is provisioned from a source in another namespace',
  },
  {
    feature: 'secrets',
    resource: secrets,
    verbs: ['get'],
    where: 'anywhere',
    state: namesSecrets,
    level: 'warning',
    without: 'no claim of a class that names a Secret is provisioned',
  },
  {
    feature: 'node-deployment',
    resource: leases,
    verbs: ['list'],
    where: 'lock',
    state: goneNodesState,
    level: 'note',
    without: 'the records of a node that is gone are not reported',
    go: 'does not need it',
  },
  {
    feature: 'node-deployment',
    resource: nodeResource,
    verbs: ['get'],
    state: goneNodesState,
    level: 'note',
    without: 'the records of a node that is gone are not reported',
    go: 'does not need it',
  },
];

/** Where the objects are; undefined: everywhere. */
export function namespaceOf({ where }: NeededRights, facts: SidecarFacts): Namespace | undefined {
  if (where === 'lock') return facts.lockNamespace;
  if (where === 'anywhere') return { name: undefined };
  return where === 'capacity' ? { name: facts.workload.namespace } : undefined;
}

/** What the CSI provisioner is put together from, as the command line asks. */
import type { VolumeAttachment } from '../csi/attachments.ts';
import type { CsiProvisionerOptions } from '../csi/csi-provisioner-options.ts';
import { provisionerIdentity } from '../csi/identity.ts';
import { driverMigration } from '../csi/migration/driver-migration.ts';
import { NodeDeployment } from '../csi/node-deployment/node-deployment.ts';
import type { ReferenceGrant } from '../csi/sources/reference-grants.ts';
import { staticNodes } from '../csi/node-deployment/static-nodes.ts';
import { Topology } from '../csi/topology/topology.ts';
import type { TopologyHook } from '../csi/topology/topology-hook.ts';
import { Informer } from '../kube/informer.ts';
import { KubeClient } from '../kube/kube-client.ts';
import type { Lister } from '../kube/lister.ts';
import type { Recorder } from '../kube/recorder.ts';
import type { ProvisionInformers } from '../provision/informers.ts';
import { centralTopology, type CentralTopologyOptions } from './central-topology.ts';
import type { RunPhaseOptions } from './run-phase-options.ts';

export function provisionerSettings(
  { config, driver, clock, logger }: RunPhaseOptions,
  parts: {
    client: KubeClient;
    informers: ProvisionInformers;
    attachments: Lister<VolumeAttachment>;
    grants: Informer<ReferenceGrant> | undefined;
    recorder: Recorder;
    attributesClasses: () => boolean;
    topology: TopologyHook | undefined;
  },
): CsiProvisionerOptions {
  const { provisioning, featureGates } = config;
  return {
    driverName: driver.name,
    identity: provisionerIdentity({
      driverName: driver.name,
      wallMs: clock.wallMs(),
      random: Math.random(),
      nodeName: config.nodeDeployment?.nodeName,
    }),
    capabilities: () => driver.capabilities,
    controller: driver.calls,
    client: parts.client,
    claims: parts.informers.claims,
    classes: parts.informers.classes,
    attachments: parts.attachments,
    referenceGrants: parts.grants,
    recorder: parts.recorder,
    logger,
    clock,
    timeoutMs: config.csiTimeoutMs,
    volumeNamePrefix: provisioning.volumeNamePrefix,
    volumeNameUuidLength: provisioning.volumeNameUuidLength,
    defaultFsType: provisioning.defaultFsType,
    extraCreateMetadata: provisioning.extraCreateMetadata,
    controllerPublishReadOnly: provisioning.controllerPublishReadOnly,
    preventVolumeModeConversion: provisioning.preventVolumeModeConversion,
    gates: {
      crossNamespaceVolumeDataSource: featureGates.crossNamespaceVolumeDataSource,
      volumeAttributesClass: parts.attributesClasses,
    },
    topology: parts.topology,
    migration: driverMigration(driver.name),
  };
}

export function clusterTopology(
  { config, driver, clock, logger }: RunPhaseOptions,
  caches: Pick<CentralTopologyOptions, 'nodes' | 'startCaches' | 'signal'>,
): TopologyHook | undefined {
  if (!config.featureGates.topology) return undefined;
  const { strictTopology, immediateTopology } = config.provisioning;
  return centralTopology({
    ...caches,
    driverName: driver.name,
    strict: strictTopology,
    immediate: immediateTopology,
    clock,
    logger,
  });
}

/** Topology of the own node alone; absent where the gate is off. */
export function nodeTopology({ config, driver, logger }: RunPhaseOptions): TopologyHook | undefined {
  const { featureGates, nodeDeployment: node, provisioning } = config;
  const { name: driverName, nodeInfo } = driver;
  if (!featureGates.topology || node === null || nodeInfo === undefined) return undefined;
  return new Topology({
    driverName,
    nodes: staticNodes({ driverName, nodeName: node.nodeName, nodeInfo: () => driver.nodeInfo ?? nodeInfo }),
    strict: provisioning.strictTopology,
    immediate: provisioning.immediateTopology,
    logger,
  });
}

/** What is for this node alone; absent in a central deployment, which serves all nodes. */
export function nodeDeployment(
  { config, driver, random, clock }: RunPhaseOptions,
  settings: CsiProvisionerOptions,
  wakeClaim: (uid: string) => void,
): NodeDeployment | undefined {
  const { nodeInfo } = driver;
  if (config.nodeDeployment === null || nodeInfo === undefined) return undefined;
  return new NodeDeployment({
    ...config.nodeDeployment,
    nodeInfo: () => driver.nodeInfo ?? nodeInfo,
    getCapacity: (request, call) => driver.calls.getCapacity(request, call),
    driverConnected: () => driver.connected,
    settings,
    workers: config.provisioning.workerThreads,
    wakeClaim,
    random,
    clock,
  });
}

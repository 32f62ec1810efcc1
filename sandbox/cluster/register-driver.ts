import type { ResourceRef, SandboxClient, SandboxObject } from '../api/client.ts';
import { resources } from '../control-plane/objects.ts';
import type { DriverFacts, NodeFacts } from './driver-client.ts';
import type { NodeFactsOf } from './given-nodes.ts';

/** The classes that are made for a driver. */
export const classNames = { immediate: 'sandbox', late: 'sandbox-late' } as const;

/** What is registered. */
export interface Registration {
  readonly driver: DriverFacts;
  readonly factsOf: NodeFactsOf;
  /** Whether the sidecar publishes its capacity. */
  readonly hasCapacity: boolean;
  /** Of both classes. */
  readonly classParameters: Readonly<Record<string, string>>;
}

/**
 * Makes what a cluster has once a driver is installed: the CSIDriver object, on every node what the kubelet makes of
 * NodeGetInfo, and two classes. Objects that are there already stay as they are, the nodes follow the driver: safe to
 * repeat when it was restarted.
 */
export function registerDriver(
  client: SandboxClient,
  { driver, factsOf, hasCapacity, classParameters }: Registration,
): void {
  createMissing(client, resources.csiDrivers, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driver.name },
    spec: {
      attachRequired: driver.controller.has('PUBLISH_UNPUBLISH_VOLUME'),
      podInfoOnMount: false,
      storageCapacity: hasCapacity,
    },
  });
  for (const node of client.list(resources.nodes)) {
    registerOnNode(client, node, { name: driver.name, info: factsOf(node.metadata.name) });
  }
  const common = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: driver.name,
    parameters: classParameters,
    allowVolumeExpansion: driver.expands,
  };
  createMissing(client, resources.classes, {
    ...common,
    metadata: {
      name: classNames.immediate,
      annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
    },
  });
  createMissing(client, resources.classes, {
    ...common,
    metadata: { name: classNames.late },
    volumeBindingMode: 'WaitForFirstConsumer',
  });
}

/** As the kubelet's plugin registration: labels for the segments, and an entry in the node's CSINode. */
function registerOnNode(
  client: SandboxClient,
  node: SandboxObject,
  { name, info }: { name: string; info: NodeFacts | undefined },
): void {
  const segments = info?.segments ?? {};
  const labels = { ...node.metadata.labels, ...segments };
  client.update(resources.nodes, { ...node, metadata: { ...node.metadata, labels } });
  const entry = { name, nodeID: info?.id ?? node.metadata.name, topologyKeys: Object.keys(segments) };
  const found = client.get(resources.csiNodes, { name: node.metadata.name });
  if (found !== undefined) {
    replaceEntry(client, found, entry);
    return;
  }
  const { name: nodeName, uid = '' } = node.metadata;
  client.create(resources.csiNodes, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: nodeName, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid }] },
    spec: { drivers: [entry] },
  });
}

/** In two writes, as the kubelet does: the entry of a driver that is gone is removed, as no API lets one be changed. */
function replaceEntry(client: SandboxClient, csiNode: SandboxObject, entry: { name: string }): void {
  const { drivers = [] } = csiNode['spec'] as { drivers?: { name: string }[] };
  const others = drivers.filter(({ name }) => name !== entry.name);
  const without = client.update(resources.csiNodes, { ...csiNode, spec: { drivers: others } });
  client.update(resources.csiNodes, { ...without, spec: { drivers: [...others, entry] } });
}

function createMissing(client: SandboxClient, ref: ResourceRef, object: SandboxObject): void {
  if (client.get(ref, { name: object.metadata.name }) === undefined) client.create(ref, object);
}

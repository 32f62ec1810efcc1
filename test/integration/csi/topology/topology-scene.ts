/** A scene whose driver has topology, in one of the clusters of the topology cases. */
import { status } from '@grpc/grpc-js';
import type { TopologyRequirement } from '../../../../src/csi/generated/csi/v1/TopologyRequirement.ts';
import type { SandboxObject } from '../../../../sandbox/api/client.ts';
import { DriverFailure, type RecordedCall } from '../../../support/fakes/recording-driver.ts';
import {
  allowed,
  type ClusterName,
  csiNodeObject,
  nodeObject,
  nodesOf,
  type SampleNode,
} from '../../../support/topology-clusters.ts';
import { driverName, resource } from '../../../support/api-scene.ts';
import { Scene, type SceneOptions } from '../scene.ts';

export const topologyPlugin = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'];
export const selectedNode = 'volume.kubernetes.io/selected-node';

export interface TopologySceneOptions extends SceneOptions {
  cluster: ClusterName;
  /** Replaces the cluster's nodes of these names. */
  nodes?: readonly SampleNode[];
  strict?: boolean | undefined;
  immediate?: boolean | undefined;
  allowed?: string | undefined;
  /** Claims wait for a selected node. */
  delayed?: boolean;
  /** A claim that is there before the program starts: its name may be one that no API server would take today. */
  claim?: SandboxObject;
}

/** A claim as it is stored. */
export function storedClaim(name: string, selected = ''): SandboxObject {
  const annotations = selected === '' ? {} : { [selectedNode]: selected };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: 'ns1',
      uid: 'f6a1b1b4-7f2e-4f0c-9a53-0d3cf7e4b8a2',
      annotations: { 'volume.kubernetes.io/storage-provisioner': driverName, ...annotations },
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'sc',
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Pending' },
  };
}

/** What came of a claim: what its CreateVolume asked for, or why it failed. */
export type ClaimOutcome = { asked: TopologyRequirement | undefined } | { failed: string };

export async function startTopologyScene(options: TopologySceneOptions): Promise<TopologyScene> {
  const { cluster, nodes = [], strict, immediate, delayed = false, claim, flags = [], storageClass, ...rest } = options;
  const all = nodesOf(cluster).map((node) => nodes.find(({ name }) => name === node.name) ?? node);
  return await TopologyScene.start({
    plugin: topologyPlugin,
    ...rest,
    objects: [
      ...(options.objects ?? []),
      claim,
      ...all.flatMap((node) => [nodeObject(node), csiNodeObject(node)]),
    ].filter((object) => object !== undefined) as SandboxObject[],
    flags: [
      ...(strict === undefined ? [] : [`--strict-topology=${strict}`]),
      ...(immediate === undefined ? [] : [`--immediate-topology=${immediate}`]),
      ...flags,
    ],
    storageClass: {
      ...(options.allowed !== undefined && { allowedTopologies: allowed(options.allowed) }),
      ...(delayed && { volumeBindingMode: 'WaitForFirstConsumer' }),
      ...storageClass,
    },
  });
}

export class TopologyScene extends Scene {
  #probes = 0;

  claimFor(name: string, selected = ''): SandboxObject {
    return this.addClaim(name, {}, selected === '' ? {} : { annotations: { [selectedNode]: selected } });
  }

  /** The node that is selected for the claim now. */
  selected(name: string): string | undefined {
    return this.claim(name)?.metadata.annotations?.[selectedNode];
  }

  /** What the scheduler, or somebody else, does to the claim; undefined: no node is selected any more. */
  select(name: string, node: string | undefined): void {
    this.annotate({ [selectedNode]: node }, name);
  }

  /** CreateVolume calls for a claim so far. */
  calls({ metadata }: SandboxObject): RecordedCall[] {
    const name = `pvc-${metadata.uid ?? ''}`;
    return this.driver.callsOf('CreateVolume').filter(({ request }) => request['name'] === name);
  }

  /** What the n-th CreateVolume (from 1) for the claim asked for, once it came. */
  async asked(claim: SandboxObject, n = 1): Promise<TopologyRequirement | undefined> {
    const call = await this.until(`call ${n} for ${claim.metadata.name}`, () => this.calls(claim)[n - 1]);
    return requirementsOf(call);
  }

  /** What came of a claim first. */
  async outcome(claim: SandboxObject): Promise<ClaimOutcome> {
    const { name } = claim.metadata;
    return await this.until(`an outcome for ${name}`, () => {
      const [call] = this.calls(claim);
      if (call !== undefined) return { asked: requirementsOf(call) };
      const failure = this.failures(name)[0];
      return failure === undefined ? undefined : { failed: failure };
    });
  }

  /** Texts of the claim's failures, each once. */
  failures(name: string): string[] {
    return this.events(name)
      .filter(({ reason }) => reason === 'ProvisioningFailed')
      .map(({ message }) => message);
  }

  /**
   * Makes CreateVolume calls for other claims than the probes wait until `release`; each then ends with the next of the
   * given codes, and with success when there is none left.
   */
  hold(...codes: (keyof typeof status)[]): { release: () => void } {
    const { driver } = this;
    const gate = Promise.withResolvers<undefined>();
    driver.always('CreateVolume', async (call: RecordedCall) => {
      const { name, capacity_range } = call.request as { name: string; capacity_range: { required_bytes: string } };
      const made = { volume: { volume_id: `vol-of-${name}`, capacity_bytes: capacity_range.required_bytes } };
      if (this.#probeNames.has(name)) return made;
      await gate.promise;
      const code = codes.shift();
      if (code !== undefined) throw new DriverFailure(status[code], `the driver says ${code}`);
      return made;
    });
    return { release: () => gate.resolve(undefined) };
  }

  readonly #probeNames = new Set<string>();

  /** Resolves once a fresh claim has the wanted outcome: the program then knows of all changes that lead to it. */
  async seen(selected: string, wanted: (outcome: ClaimOutcome) => boolean): Promise<void> {
    for (;;) {
      this.#probes += 1;
      const probe = this.claimFor(`probe-${this.#probes}`, selected);
      this.#probeNames.add(`pvc-${probe.metadata.uid ?? ''}`);
      if (wanted(await this.outcome(probe))) return;
    }
  }

  putNode(node: SampleNode): void {
    const [object, csiNode] = [nodeObject(node), csiNodeObject(node)];
    const put = (ref: typeof resource.nodes, wanted: SandboxObject | undefined): void => {
      if (wanted === undefined) return;
      const known = structuredClone(this.api.get(ref, { name: node.name }));
      if (known === undefined) this.api.create(ref, wanted);
      else this.api.update(ref, { ...known, ...wanted, metadata: { ...known.metadata, ...wanted.metadata } });
    };
    put(resource.nodes, object as SandboxObject | undefined);
    const known = this.api.get(resource.csiNodes, { name: node.name });
    // as the kubelet: entries are removed and added, since no API lets one be changed
    if (known !== undefined && csiNode !== undefined)
      this.api.update(resource.csiNodes, { ...known, spec: { drivers: [] } });
    put(resource.csiNodes, csiNode as SandboxObject | undefined);
  }

  removeNode(name: string): void {
    this.api.delete(resource.nodes, { name });
  }

  removeCsiNode(name: string): void {
    this.api.delete(resource.csiNodes, { name });
  }
}

function requirementsOf({ request }: RecordedCall): TopologyRequirement | undefined {
  return request['accessibility_requirements'] ?? undefined;
}

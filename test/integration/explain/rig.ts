/** The sandbox's API server with objects as a cluster would have them, and the explanations of `why` over HTTP. */
import { silentLogger } from '../../../src/base/logger.ts';
import { claimSecret } from '../../../src/cli/why.ts';
import { ClusterReader } from '../../../src/explain/cluster-reader.ts';
import { explainClaim } from '../../../src/explain/explain-claim.ts';
import { explainVolume } from '../../../src/explain/explain-volume.ts';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import { driverName, resource } from '../../support/api-scene.ts';
import type { SandboxClient, SandboxMeta, SandboxObject, SandboxOwner } from '../../../sandbox/api/client.ts';

const handedOver = 'volume.kubernetes.io/storage-provisioner';

export type Kind = keyof typeof resource;

/** What others than its user write into a claim. */
export interface ClaimState {
  annotations?: Record<string, string>;
  phase?: string;
  finalizers?: string[];
  ownerReferences?: SandboxOwner[];
  name?: string;
}

/** A provisioner as its objects show it. */
export interface ProvisionerState {
  /** Of its driver. */
  name?: string;
  renewedMsAgo?: number;
  holder?: string;
}

/** A running API server; dispose it. */
export class ExplainRig implements AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  readonly api: SandboxClient;
  /** `get pods` and so on, of the last explanation. */
  requests: string[] = [];
  readonly #transport: Transport;
  readonly #client: KubeClient;
  #serial = 0;

  private constructor(server: ApiServer, url: string) {
    this.server = server;
    this.url = url;
    this.api = server.client('test');
    this.#transport = connect({
      master: url,
      environment: {},
      logger: silentLogger,
      onRequest: ({ verb, resource }) => this.requests.push(`${verb} ${resource}`),
    });
    this.#client = new KubeClient({ transport: this.#transport, fieldManager: 'test' });
  }

  static async start(): Promise<ExplainRig> {
    const server = new ApiServer({ namespaces: ['default', 'ns1', 'ns2', 'driver'] });
    const { url } = await server.start();
    return new ExplainRig(server, url);
  }

  /** Makes an object, and sets its status if it has one. */
  add(
    kind: Kind,
    object: { metadata: Partial<SandboxMeta>; status?: object; [field: string]: unknown },
  ): SandboxObject {
    const { status, metadata, ...fields } = object;
    const name = metadata.name ?? `o${++this.#serial}`;
    const created = this.api.create(resource[kind], { ...fields, metadata: { ...metadata, name } });
    return status === undefined ? created : this.api.updateStatus(resource[kind], { ...created, status });
  }

  change(kind: Kind, object: SandboxObject): SandboxObject {
    return this.api.update(resource[kind], object);
  }

  changeStatus(kind: Kind, object: SandboxObject): SandboxObject {
    return this.api.updateStatus(resource[kind], object);
  }

  delete(kind: Kind, name: string, namespace?: string): void {
    this.api.delete(resource[kind], { name, ...(namespace !== undefined && { namespace }) });
  }

  /** The class `sc` of the driver. */
  addClass(fields: object = {}): void {
    this.add('classes', { metadata: { name: 'sc' }, provisioner: driverName, ...fields });
  }

  /** CSIDriver and a Lease that was renewed this long ago. */
  addProvisioner({ name = driverName, renewedMsAgo = 0, holder = 'pod-1' }: ProvisionerState = {}): void {
    this.add('drivers', { metadata: { name }, spec: {} });
    const renewTime = new Date(Date.now() - renewedMsAgo).toISOString().replace('Z', '000Z');
    this.add('leases', {
      metadata: { name: name.replaceAll('.', '-'), namespace: 'driver' },
      spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime },
    });
  }

  /** The Lease of the provisioner. */
  lease(): SandboxObject {
    const lease = this.api.get(resource.leases, { name: driverName.replaceAll('.', '-'), namespace: 'driver' });
    if (lease === undefined) throw new Error('there is no Lease');
    return lease;
  }

  /** Claim `ns1/c`, which kube-controller-manager has handed over unless `annotations` say otherwise. */
  addClaim(
    spec: object = {},
    {
      annotations = { [handedOver]: driverName },
      phase = 'Pending',
      finalizers = [],
      ownerReferences = [],
      name = 'c',
    }: ClaimState = {},
  ): SandboxObject {
    return this.add('claims', {
      metadata: { namespace: 'ns1', name, annotations, finalizers, ownerReferences },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'sc',
        ...spec,
      },
      status: { phase },
    });
  }

  addVolume(name: string, spec: object = {}, phase = 'Available', metadata: Partial<SandboxMeta> = {}): SandboxObject {
    return this.add('volumes', {
      metadata: { name, ...metadata },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'sc',
        csi: { driver: driverName, volumeHandle: `handle-${name}` },
        ...spec,
      },
      status: { phase },
    });
  }

  addPod(
    name: string,
    {
      spec = {},
      status = { phase: 'Pending' },
      finalizers = [],
    }: { spec?: object; status?: object; finalizers?: string[] } = {},
  ): SandboxObject {
    return this.add('pods', {
      metadata: { name, namespace: 'ns1', finalizers },
      spec: {
        containers: [{ name: 'main', image: 'none' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }],
        ...spec,
      },
      status,
    });
  }

  /** Pod `ns1/NAME`. */
  pod(name: string): SandboxObject {
    const pod = this.api.get(resource.pods, { name, namespace: 'ns1' });
    if (pod === undefined) throw new Error(`there is no Pod ${name}`);
    return pod;
  }

  /** An event of the driver's provisioner about an object. */
  addEvent(
    about: SandboxObject,
    reason: string,
    message: string,
    { msAgo = 0, count = 1, component = `${driverName}_pod-1` } = {},
  ): void {
    const { namespace = 'default', name, uid } = about.metadata;
    const time = new Date(Date.now() - msAgo).toISOString().replace(/\.\d+Z/, 'Z');
    this.add('events', {
      metadata: { namespace },
      involvedObject: { kind: about.kind, namespace: about.metadata.namespace, name, uid },
      type: reason === 'ProvisioningFailed' ? 'Warning' : 'Normal',
      source: { component },
      ...{ reason, message, count, firstTimestamp: time, lastTimestamp: time },
    });
  }

  /** A kubeconfig for it, in JSON; its context names namespace `ns1`. */
  kubeconfig(): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'rig', cluster: { server: this.url } }],
      users: [{ name: 'user', user: {} }],
      contexts: [{ name: 'rig', context: { cluster: 'rig', user: 'user', namespace: 'ns1' } }],
      'current-context': 'rig',
    });
  }

  /** Refuses a right until the end. */
  forbid(verb: string, resource: string): void {
    const message = `${resource} is forbidden: User "u" cannot ${verb} resource "${resource}"`;
    this.server.faults.add({
      match: { verb, resource },
      action: { type: 'status', code: 403, reason: 'Forbidden', message },
    });
  }

  /** Explains claim `ns1/c` or the volume. @param laterMs - how much later than now somebody asks. */
  async explain(
    object: { claim: string } | { volume: string } = { claim: 'c' },
    { laterMs = 0 }: { laterMs?: number } = {},
  ): Promise<Explanation> {
    this.requests = [];
    const reader = new ClusterReader({ client: this.#client, signal: new AbortController().signal });
    const options = { reader, now: () => Date.now() + laterMs, secretOf: claimSecret };
    return 'volume' in object
      ? await explainVolume(object.volume, options)
      : await explainClaim({ namespace: 'ns1', name: object.claim }, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
    await this.server.close();
  }
}

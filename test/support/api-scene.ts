/** The sandbox's API server in this process, and what users and other controllers do with it. */
import type { ApiServer } from '../../sandbox/api/api-server.ts';
import type { ResourceRef, SandboxClient, SandboxMeta, SandboxObject } from '../../sandbox/api/client.ts';
import { StatusError } from '../../sandbox/api/status-error.ts';
import type { PersistentVolume } from '../../src/provision/objects.ts';
import { Bulletin } from './bulletin.ts';

export const driverName = 'd.example.com';

const core = (plural: string): ResourceRef => ({ group: '', version: 'v1', plural });
const storage = (plural: string): ResourceRef => ({ group: 'storage.k8s.io', version: 'v1', plural });
const snapshot = (plural: string): ResourceRef => ({ group: 'snapshot.storage.k8s.io', version: 'v1', plural });

export const resource = {
  claims: core('persistentvolumeclaims'),
  volumes: core('persistentvolumes'),
  pods: core('pods'),
  nodes: core('nodes'),
  events: core('events'),
  secrets: core('secrets'),
  classes: storage('storageclasses'),
  drivers: storage('csidrivers'),
  csiNodes: storage('csinodes'),
  attachments: storage('volumeattachments'),
  capacities: storage('csistoragecapacities'),
  attributesClasses: storage('volumeattributesclasses'),
  leases: { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' },
  snapshots: snapshot('volumesnapshots'),
  contents: snapshot('volumesnapshotcontents'),
  grants: { group: 'gateway.networking.k8s.io', version: 'v1beta1', plural: 'referencegrants' },
} as const satisfies Record<string, ResourceRef>;

/** A core/v1 event, as far as tests look at it. */
export interface SeenEvent {
  type: string;
  reason: string;
  message: string;
  count: number;
}

/** The parts of a PersistentVolume that tests look at. */
export interface SavedVolume {
  metadata: SandboxMeta;
  spec: {
    claimRef?: { name: string };
    capacity: { storage: string };
    csi: { volumeHandle: string; fsType?: string; volumeAttributes: Record<string, string> };
    nodeAffinity?: PersistentVolume['spec']['nodeAffinity'];
  };
}

export interface ApiSceneOptions {
  server: ApiServer;
  url: string;
  /** What ends with the scene, the server among it. */
  opened: AsyncDisposableStack;
  /** The claim that is meant where none is named. Default: `ns1/c1`; all are in its namespace. */
  claim?: { namespace: string; name: string };
  /** That claims are handed to. Default: `d.example.com`. */
  driver?: string;
}

/** Dispose it. */
export abstract class ApiScene implements AsyncDisposable {
  readonly server: ApiServer;
  readonly url: string;
  /** The API without HTTP. */
  readonly api: SandboxClient;
  protected readonly opened: AsyncDisposableStack;
  protected readonly bulletin = new Bulletin();
  readonly #claim: { namespace: string; name: string };
  readonly #driverName: string;

  constructor({ server, url, opened, claim = { namespace: 'ns1', name: 'c1' }, driver = driverName }: ApiSceneOptions) {
    this.server = server;
    this.url = url;
    this.opened = opened;
    this.#claim = claim;
    this.#driverName = driver;
    this.api = server.client('test');
    for (const each of Object.values(resource)) this.#follow(each);
  }

  /** An API server may leave out a resource. */
  #follow(each: ResourceRef): void {
    try {
      this.api.subscribe(each, this.bulletin.notify);
    } catch (error) {
      if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error;
    }
  }

  /** Resolves with what `read` finds; looked at when something changes in the cluster, and every few milliseconds. */
  until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return this.bulletin.until(what, read);
  }

  /** A claim of class `sc` for the driver, 1Gi unless the spec says otherwise. */
  createClaim(name = this.#claim.name, spec: object = {}, metadata: Partial<SandboxMeta> = {}): SandboxObject {
    return this.api.create(resource.claims, {
      metadata: {
        name,
        namespace: this.#claim.namespace,
        ...metadata,
        annotations: { 'volume.kubernetes.io/storage-provisioner': this.#driverName, ...metadata.annotations },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'sc',
        ...spec,
      },
    });
  }

  claim(name = this.#claim.name): SandboxObject | undefined {
    return this.api.get(resource.claims, { ...this.#claim, name });
  }

  /** Changes annotations of a claim, as another client would; undefined removes one. */
  annotate(annotations: Record<string, string | undefined>, name = this.#claim.name): void {
    const claim = structuredClone(this.#existing(name));
    const all = Object.entries({ ...claim.metadata.annotations, ...annotations });
    claim.metadata.annotations = Object.fromEntries(
      all.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    );
    this.api.update(resource.claims, claim);
  }

  /** Deletes a claim for good, as the control plane does with one that no pod uses. */
  removeClaim(name = this.#claim.name): void {
    const claim = structuredClone(this.#existing(name));
    this.api.update(resource.claims, { ...claim, metadata: { ...claim.metadata, finalizers: [] } });
    this.api.delete(resource.claims, { ...this.#claim, name });
  }

  get volumes(): SavedVolume[] {
    return this.api.list(resource.volumes) as unknown as SavedVolume[];
  }

  volumeNow(claimName = this.#claim.name): SavedVolume | undefined {
    return this.volumes.find(({ spec }) => spec.claimRef?.name === claimName);
  }

  /** The volume of a claim, once it is saved. */
  async volume(claimName = this.#claim.name): Promise<SavedVolume> {
    return await this.until(`the volume of ${claimName}`, () => this.volumeNow(claimName));
  }

  /** Events about an object, oldest first. */
  events(name = this.#claim.name): SeenEvent[] {
    const about = (event: SandboxObject): unknown => (event['involvedObject'] as { name?: string }).name;
    const events = this.api.list(resource.events).filter((event) => about(event) === name);
    return (events as unknown as SeenEvent[]).map(({ type, reason, message, count }) => ({
      type,
      reason,
      message,
      count,
    }));
  }

  /** The first event of a reason about an object, once it is there. */
  async event(reason: string, name = this.#claim.name): Promise<SeenEvent> {
    return await this.until(`an event ${reason} about ${name}`, () =>
      this.events(name).find((event) => event.reason === reason),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.opened.disposeAsync();
  }

  #existing(name: string): SandboxObject {
    const claim = this.claim(name);
    if (claim === undefined) throw new Error(`no claim ${name}`);
    return claim;
  }
}

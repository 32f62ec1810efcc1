/** Nodes with a driver by script and the whole program on each, one API server, and time that a test moves. */
import { ApiServer } from '../../../../sandbox/api/api-server.ts';
import type { SandboxObject } from '../../../../sandbox/api/client.ts';
import type { FaultRule } from '../../../../sandbox/api/faults.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type RecordedCall, RecordingDriver } from '../../../support/fakes/recording-driver.ts';
import { ApiScene, driverName, resource, type SeenEvent } from '../../../support/api-scene.ts';
import { type SentRequest, Wire } from '../../provision/wire.ts';
import { Program } from '../../../support/program.ts';

export const nodeKey = 'volume.kubernetes.io/selected-node';
export const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';
export const volumeFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
/** Label of the nodes, with the node's name as its value. */
export const topologyKey = 't/node';
export const gi1 = 1_073_741_824;

/** A CreateVolume request, as far as tests look at it. */
export interface CreateRequest {
  name: string;
  accessibility_requirements: { requisite: { segments: object }[]; preferred: { segments: object }[] } | null;
}

export interface NodeSceneOptions {
  /** Default: `n1` alone. */
  nodes?: readonly string[];
  flags?: readonly string[];
  /** Default: the driver places its volumes. */
  topology?: boolean;
  controller?: string[];
  /** Changes the drivers' scripts before the programs start. */
  script?: (driver: RecordingDriver, node: string) => void;
  /** Part of the base delay that is taken off each wait, by node. Default: half of it. */
  random?: (node: string) => () => number;
  workers?: number;
  /** Time that passes by itself. Default: a test moves it. */
  ownTime?: boolean;
  /** What to wait for. Default: that all programs work. */
  until?: 'ended';
}

interface Instance {
  driver: RecordingDriver;
  program: Program;
}

async function startDriver(
  node: string,
  { topology, controller, socketPath }: { topology: boolean; controller?: string[] | undefined; socketPath?: string },
): Promise<RecordingDriver> {
  const driver = await RecordingDriver.start({
    plugin: ['CONTROLLER_SERVICE', ...(topology ? ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] : [])],
    controller,
    socketPath,
  });
  const segments = { [topologyKey]: node };
  driver.always('NodeGetInfo', { node_id: `id-of-${node}`, ...(topology && { accessible_topology: { segments } }) });
  driver.always('GetCapacity', { available_capacity: 100 * gi1 });
  driver.always('CreateVolume', ({ request }: RecordedCall) => ({
    volume: {
      volume_id: `${node}/${String(request['name'])}`,
      capacity_bytes: (request['capacity_range'] as { required_bytes?: string } | null)?.required_bytes ?? 0,
      content_source: request['volume_content_source'],
      ...(topology && { accessible_topology: [{ segments }] }),
    },
  }));
  return driver;
}

/** A running scene; dispose it. Base delay 2 s, at most 5 s; nothing is retried before time is moved. */
export class NodeScene extends ApiScene {
  readonly clock = new ManualClock();
  readonly wire: Wire;
  readonly #instances = new Map<string, Instance>();
  #sentinels = 0;

  private constructor(server: ApiServer, url: string) {
    super({ server, url, opened: new AsyncDisposableStack(), claim: { namespace: 'ns', name: 'x' } });
    this.opened.defer(() => server.close());
    this.wire = this.opened.use(new Wire({ origin: url, onAnswer: this.bulletin.notify }));
  }

  static async start(options: NodeSceneOptions = {}): Promise<NodeScene> {
    const { nodes = ['n1'], flags = [], topology = true, controller, workers = 1 } = options;
    const { random = () => () => 0.5, ownTime = false } = options;
    const server = new ApiServer({ namespaces: ['default', 'ns'] });
    const { url } = await server.start();
    await using opening = new AsyncDisposableStack();
    const scene = opening.use(new NodeScene(server, url));
    scene.addClass('imm', { volumeBindingMode: 'Immediate' });
    scene.addClass('late', { volumeBindingMode: 'WaitForFirstConsumer' });
    for (const node of nodes) {
      const driver = scene.opened.use(await startDriver(node, { topology, controller }));
      options.script?.(driver, node);
      const program = new Program({
        socketPath: driver.socketPath,
        apiUrl: url,
        flags: [
          '--node-deployment',
          '--node-deployment-base-delay=2s',
          '--node-deployment-max-delay=5s',
          `--worker-threads=${workers}`,
          '-v=5',
          ...flags,
        ],
        environment: { NODE_NAME: node },
        ...(!ownTime && { clock: scene.clock }),
        random: random(node),
      });
      scene.opened.use(program);
      scene.#instances.set(node, { driver, program });
    }
    for (const { program } of scene.#instances.values())
      await (options.until === 'ended' ? program.ended : program.logged('Started provisioner controller'));
    opening.move();
    return scene;
  }

  driver(node = 'n1'): RecordingDriver {
    return this.#instance(node).driver;
  }

  /** The driver ends, and comes back on its socket as one with topology and the usual script. */
  async restartDriver(change: (driver: RecordingDriver) => void, node = 'n1'): Promise<void> {
    const instance = this.#instance(node);
    const { socketPath } = instance.driver;
    instance.driver.kill();
    instance.driver = this.opened.use(await startDriver(node, { topology: true, socketPath }));
    change(instance.driver);
    await this.program(node).logged('The driver came back');
  }

  program(node = 'n1'): Program {
    return this.#instance(node).program;
  }

  #instance(node: string): Instance {
    const instance = this.#instances.get(node);
    if (instance === undefined) throw new Error(`there is no node ${node}`);
    return instance;
  }

  /** Waits until a method was called so often. */
  async called(method: string, count = 1, node = 'n1'): Promise<RecordedCall> {
    const calls = (): RecordedCall[] => this.driver(node).callsOf(method);
    return await this.until(`call ${count} of ${method} on ${node}`, () => calls()[count - 1]);
  }

  calls(method: string, node = 'n1'): number {
    return this.driver(node).callsOf(method).length;
  }

  /** Requests for CreateVolume, those of sentinels left out. */
  creates(node = 'n1'): CreateRequest[] {
    const requests = this.driver(node)
      .callsOf('CreateVolume')
      .map(({ request }) => request as unknown as CreateRequest);
    return requests.filter(({ name }) => !this.#sentinelNames.has(name));
  }

  readonly #sentinelNames = new Set<string>();

  /** Waits until the node has looked at all claims that there are, and at all changes of them so far. */
  async looked(node = 'n1'): Promise<void> {
    const name = `zz-${++this.#sentinels}`;
    const { metadata } = this.addClaim(name, { class: 'late', node });
    const volume = `pvc-${metadata.uid ?? ''}`;
    this.#sentinelNames.add(volume);
    await this.until(`the sentinel ${name}`, () => this.api.get(resource.volumes, { name: volume }));
  }

  /** Waits until the node waits for a claim, for the n-th time. */
  async waits(count = 1, node = 'n1'): Promise<void> {
    const lines = (): number =>
      this.program(node).lines.filter((line) => line.includes('Will try to become owner of the claim')).length;
    await this.until(`wait ${count} of ${node}`, () => lines() >= count);
  }

  addClass(name: string, fields: object): SandboxObject {
    return this.api.create(resource.classes, { metadata: { name }, provisioner: driverName, ...fields });
  }

  /** Claim `ns/x` of class `imm` and 1 GiB, unless told otherwise. */
  addClaim(
    name = 'x',
    more: { class?: string; node?: string; spec?: object; annotations?: object } = {},
  ): SandboxObject {
    const selected = more.node === undefined ? {} : { [nodeKey]: more.node };
    const annotations = { ...selected, ...more.annotations };
    return this.createClaim(name, { storageClassName: more.class ?? 'imm', ...more.spec }, { annotations });
  }

  /** A snapshot of the driver's in namespace `ns`, ready to be restored. */
  addSnapshot(name: string): void {
    const created = this.api.create(resource.snapshots, {
      metadata: { namespace: 'ns', name },
      spec: { source: { persistentVolumeClaimName: 'source' } },
    });
    const content = `content-of-${name}`;
    const status = { readyToUse: true, restoreSize: '1Gi', boundVolumeSnapshotContentName: content };
    this.api.updateStatus(resource.snapshots, { ...structuredClone(created), status });
    const of = this.api.create(resource.contents, {
      metadata: { name: content },
      spec: {
        driver: driverName,
        deletionPolicy: 'Delete',
        source: { snapshotHandle: name },
        volumeSnapshotRef: { namespace: 'ns', name, uid: created.metadata.uid },
      },
    });
    this.api.updateStatus(resource.contents, {
      ...structuredClone(of),
      status: { snapshotHandle: name, readyToUse: true },
    });
  }

  /** The node that the claim names. */
  owner(name = 'x'): string | undefined {
    return this.claim(name)?.metadata.annotations?.[nodeKey];
  }

  /** A volume of the driver with policy Delete, held by nothing. */
  addVolume(
    name: string,
    phase: string,
    {
      affinity,
      identity,
      finalizers = [volumeFinalizer],
    }: { affinity?: object; identity?: string; finalizers?: string[] } = {},
  ): void {
    const volume = structuredClone(
      this.api.create(resource.volumes, {
        metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': driverName }, finalizers },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          storageClassName: 'late',
          csi: {
            driver: driverName,
            volumeHandle: `handle-${name}`,
            ...(identity !== undefined && { volumeAttributes: { [identityKey]: identity } }),
          },
          ...(affinity && { nodeAffinity: { required: { nodeSelectorTerms: [affinity] } } }),
        },
      }),
    );
    volume['status'] = { phase };
    this.api.updateStatus(resource.volumes, volume);
  }

  /** The volume is attached to the node. */
  addAttachment(volume: string, nodeName: string): void {
    this.api.create(resource.attachments, {
      metadata: { name: `attachment-of-${volume}` },
      spec: { attacher: driverName, nodeName, source: { persistentVolumeName: volume } },
    });
  }

  /** Whether the program has let go of the volume. */
  isDeleted(name: string): boolean {
    const volume = this.api.get(resource.volumes, { name });
    if (volume === undefined) return true;
    const { deletionTimestamp, finalizers = [] } = volume.metadata;
    return deletionTimestamp !== undefined && !finalizers.includes(volumeFinalizer);
  }

  finalizersOf(volume: string): string[] {
    return this.api.get(resource.volumes, { name: volume })?.metadata.finalizers ?? [];
  }

  /** Waits until node `n1` has looked at all volumes that there are. */
  async volumesLooked(identity?: string): Promise<void> {
    const name = `zz-${++this.#sentinels}`;
    this.addVolume(name, 'Released', { ...(identity !== undefined && { identity }) });
    await this.until(`the sentinel ${name}`, () => this.isDeleted(name));
  }

  /** Those that were counted last come last. */
  override events(name = 'x'): SeenEvent[] {
    return this.api
      .list(resource.events)
      .filter((event) => (event['involvedObject'] as { name?: string }).name === name)
      .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map((event) => event as unknown as SeenEvent);
  }

  /** Writes of a claim that went over the wire, each as method and named node. */
  writesOf(name = 'x'): string[] {
    return this.#requests(`/persistentvolumeclaims/${name}`)
      .filter(({ method }) => method !== 'GET')
      .map(({ method, body }) => `${method} ${body.metadata.annotations?.[nodeKey] ?? '-'}`);
  }

  #requests(part: string): SentRequest[] {
    return this.wire.requests.filter(({ path }) => path.split('?')[0]?.endsWith(part));
  }

  /** Requests for a kind of object, whatever their outcome. */
  requestsFor(plural: string): SentRequest[] {
    return this.wire.requests.filter(({ path }) => new RegExp(`/${plural}([/?]|$)`).test(path));
  }

  fault(rule: FaultRule): void {
    this.server.faults.add(rule);
  }

  /** Refuses the next writes of a claim. */
  refuseClaimWrites(code: number, reason: string, times: number): void {
    this.fault({
      match: { verb: 'update', resource: 'persistentvolumeclaims' },
      action: { type: 'status', code, reason, message: `refused with ${code}` },
      times,
    });
  }
}

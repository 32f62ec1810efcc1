import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, CsiClient, described } from './csi-client.ts';
import type {
  CreateVolumeRequest,
  Method,
  Responses,
  Snapshot,
  StringMap,
  Volume,
  VolumeCapability,
} from './csi-messages.ts';
import { throwIfGivenUp } from './check-signal.ts';
import { type DriverFacts, readFacts } from './facts.ts';
import type { BenchOptions } from './bench-options.ts';
import type { KubernetesBench } from './kubernetes-bench.ts';
import { Ledger } from './ledger.ts';
import { CheckFailed, CheckSkipped } from './outcome.ts';
import type { SidecarCalls } from './sidecar-calls.ts';

const reservedPrefix = 'csi.storage.k8s.io/';
const pollMs = 200;
/** How often a call that is ABORTED is repeated. */
const maxRepeats = 25;

/** A node, and what its driver has been asked to do. */
export interface NodeUnderCheck {
  readonly node: string;
  readonly bench: Bench;
  /** Of its sidecar. */
  readonly calls: SidecarCalls;
}

/** A driver with a process and a sidecar on each node. */
export interface DriverPerNode {
  readonly nodes: readonly NodeUnderCheck[];
  /** The sandbox with the sidecars. */
  kubernetes(): Promise<KubernetesBench>;
}

/** A driver, and what the checks have done to it. */
export class Bench implements Disposable {
  readonly options: BenchOptions;
  readonly facts: DriverFacts;
  readonly ledger = new Ledger();
  /** Every answer so far. */
  readonly answers: Answer<unknown>[];
  readonly client: CsiClient;
  /** Ids that ListVolumes had before anything was made; undefined where it cannot say. */
  listedBefore: ReadonlySet<string> | undefined;
  /** Kills the driver and waits until it is ready again; undefined when nobody knows how to start it. */
  restartDriver: (() => Promise<void>) | undefined;
  /** The sandbox, started when it is first needed. */
  kubernetes: () => Promise<KubernetesBench> = () => Promise.reject(new CheckSkipped('there is no sandbox'));

  /** The driver as it runs with node deployment, started when it is first needed. */
  nodeDeployment: () => Promise<DriverPerNode> = () =>
    Promise.reject(new CheckSkipped('no driver can be started for a node: --node-driver-command is not given'));

  private constructor(options: BenchOptions, parts: Pick<Bench, 'facts' | 'answers' | 'client'>) {
    this.options = options;
    this.facts = parts.facts;
    this.answers = parts.answers;
    this.client = parts.client;
  }

  /** Asks the driver what it is. */
  static async start(options: BenchOptions): Promise<Bench> {
    const answers: Answer<unknown>[] = [];
    const { socketPath, timeoutMs } = options;
    const client = new CsiClient({ socketPath, timeoutMs, observe: (answer) => void answers.push(answer) });
    return new Bench(options, { facts: await readFacts(client), answers, client });
  }

  [Symbol.dispose](): void {
    this.client[Symbol.dispose]();
  }

  /** Whether volumes are reachable from some nodes alone. */
  get topology(): boolean {
    return this.facts.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS');
  }

  /** Segments of all nodes, without doubles. */
  get knownSegments(): StringMap[] {
    const all = [this.facts.segments, ...this.options.nodes.map(({ segments }) => segments)];
    const texts = all
      .filter((segments) => Object.keys(segments).length > 0)
      .map((segments) => JSON.stringify(segments));
    return [...new Set(texts)].map((text) => JSON.parse(text) as StringMap);
  }

  /** The class's parameters without those for the sidecar. */
  get parameters(): StringMap {
    const own = Object.entries(this.options.classParameters).filter(([key]) => !key.startsWith(reservedPrefix));
    return Object.fromEntries(own);
  }

  /** @throws {CheckSkipped} when the controller does not announce the capability. */
  needController(capability: string): void {
    if (this.facts.controller.has(capability)) return;
    throw new CheckSkipped(`the driver has no ${capability}`);
  }

  /** How Kubernetes asks for ReadWriteOnce, or for another mode of CSI. */
  capability({ mode, block = false }: { mode?: string; block?: boolean } = {}): VolumeCapability {
    const once = this.facts.controller.has('SINGLE_NODE_MULTI_WRITER')
      ? 'SINGLE_NODE_MULTI_WRITER'
      : 'SINGLE_NODE_WRITER';
    const fsType = this.options.classParameters[`${reservedPrefix}fstype`];
    const mount = fsType === undefined ? {} : { fs_type: fsType };
    return { ...(block ? { block: {} } : { mount }), access_mode: { mode: mode ?? once } };
  }

  /** What the sidecar would ask for. */
  request(changes: Partial<CreateVolumeRequest> = {}): CreateVolumeRequest {
    const segments = this.knownSegments.map((each) => ({ segments: each }));
    return {
      name: `pvc-${randomUUID()}`,
      capacity_range: { required_bytes: String(this.options.sizeBytes) },
      volume_capabilities: [this.capability()],
      parameters: this.parameters,
      secrets: this.options.secrets,
      ...(this.topology && segments.length > 0
        ? { accessibility_requirements: { requisite: segments, preferred: segments } }
        : {}),
      ...changes,
    };
  }

  /** CreateVolume, whatever comes of it. Repeated while another call for it is in work. */
  async tryCreate(request: CreateVolumeRequest): Promise<Answer<Responses['CreateVolume']>> {
    return this.patiently(() => this.createOnce(request));
  }

  async createOnce(request: CreateVolumeRequest): Promise<Answer<Responses['CreateVolume']>> {
    throwIfGivenUp(); // else a volume that nobody asks for would count as uncertain
    this.ledger.uncertain.set(request.name, request);
    const answer = await this.client.call('CreateVolume', request);
    if (answer.ok) this.ledger.created(request, answer.response.volume ?? {});
    else this.ledger.failed(request, answer.code);
    return answer;
  }

  /** A volume to work with. @throws {CheckFailed} {CheckSkipped} */
  async create(
    changes: Partial<CreateVolumeRequest> = {},
  ): Promise<{ id: string; volume: Volume; request: CreateVolumeRequest }> {
    const request = this.request(changes);
    const { volume = {} } = this.ok(await this.tryCreate(request));
    return { id: idOf(volume), volume, request };
  }

  /** DeleteVolume, repeated while another call for the volume is in work. */
  async tryDelete(id: string): Promise<Answer<object>> {
    const answer = await this.patiently(() =>
      this.call('DeleteVolume', { volume_id: id, secrets: this.options.secrets }),
    );
    if (answer.ok) this.ledger.volumes.delete(id);
    return answer;
  }

  /** @throws {CheckFailed} */
  async delete(id: string): Promise<void> {
    this.ok(await this.tryDelete(id));
  }

  async trySnapshot(name: string, sourceId: string): Promise<Answer<Responses['CreateSnapshot']>> {
    const { secrets } = this.options;
    const answer = await this.patiently(() =>
      this.call('CreateSnapshot', { name, source_volume_id: sourceId, secrets, parameters: {} }),
    );
    const id = answer.ok ? (answer.response.snapshot?.snapshot_id ?? '') : '';
    if (id !== '') for (const ids of [this.ledger.snapshots, this.ledger.everTaken]) ids.add(id);
    return answer;
  }

  /** A snapshot that is ready to use. @throws {CheckFailed} */
  async snapshot(
    sourceId: string,
    name = `snapshot-${randomUUID()}`,
  ): Promise<{ id: string; snapshot: Snapshot; name: string }> {
    for (let left = maxRepeats; ; left--) {
      const { snapshot = {} } = this.ok(await this.trySnapshot(name, sourceId));
      const { snapshot_id: id = '' } = snapshot;
      if (id === '') throw new CheckFailed('CreateSnapshot: snapshot_id is empty', 'CreateSnapshot');
      if (snapshot.ready_to_use === true) return { id, snapshot, name };
      if (left === 0)
        throw new CheckSkipped(`snapshot ${id} is not ready to use after ${(maxRepeats * pollMs) / 1000} s`);
      await delay(pollMs);
    }
  }

  async tryDeleteSnapshot(id: string): Promise<Answer<object>> {
    const answer = await this.patiently(() =>
      this.call('DeleteSnapshot', { snapshot_id: id, secrets: this.options.secrets }),
    );
    if (answer.ok) this.ledger.snapshots.delete(id);
    return answer;
  }

  async tryPublish(id: string, nodeId: string, volume: Volume): Promise<Answer<Responses['ControllerPublishVolume']>> {
    const answer = await this.patiently(() =>
      this.call('ControllerPublishVolume', {
        volume_id: id,
        node_id: nodeId,
        volume_capability: this.capability(),
        readonly: false,
        secrets: this.options.secrets,
        volume_context: volume.volume_context ?? {},
      }),
    );
    if (answer.ok) this.ledger.attached.add(JSON.stringify([id, nodeId]));
    return answer;
  }

  async tryUnpublish(id: string, nodeId: string): Promise<Answer<object>> {
    const answer = await this.patiently(() =>
      this.call('ControllerUnpublishVolume', { volume_id: id, node_id: nodeId, secrets: this.options.secrets }),
    );
    if (answer.ok) this.ledger.attached.delete(JSON.stringify([id, nodeId]));
    return answer;
  }

  call<M extends Method>(method: M, request: object = {}): Promise<Answer<Responses[M]>> {
    return this.client.call(method, request);
  }

  /** Waits until the connection stands again after the driver has ended. */
  async callable(): Promise<void> {
    for (let left = maxRepeats; left > 0; left--) {
      const answer = await this.call('Probe');
      if (answer.ok || answer.code !== 'UNAVAILABLE') return;
      await delay(pollMs);
    }
  }

  /** The response. @throws {CheckFailed} for any status other than OK. */
  ok<Response>(answer: Answer<Response>): Response {
    if (answer.ok) return answer.response;
    throw new CheckFailed(this.described(answer));
  }

  described(answer: Answer<unknown>): string {
    return described(answer, this.options.timeoutMs);
  }

  /** Remembers what ListVolumes has before anything is made. */
  async noteListed(): Promise<void> {
    if (this.facts.controller.has('LIST_VOLUMES')) this.listedBefore = await this.#listedIds().catch(() => undefined);
  }

  /** Ids of volumes that were made and should be gone, and that ListVolumes still has. Empty where it cannot say. @throws {CheckFailed} */
  async leftInList(): Promise<string[]> {
    const { listedBefore, ledger } = this;
    if (listedBefore === undefined) return [];
    return [...(await this.#listedIds())].filter((id) => !listedBefore.has(id) && !ledger.volumes.has(id));
  }

  async #listedIds(): Promise<Set<string>> {
    return new Set((await this.list()).map(({ volume_id: id = '' }) => id));
  }

  /** Every volume that ListVolumes has. @throws {CheckFailed} */
  async list(): Promise<Volume[]> {
    const volumes: Volume[] = [];
    let token = '';
    const seen = new Set<string>();
    do {
      const { entries = [], next_token: next = '' } = this.ok(
        await this.call('ListVolumes', { starting_token: token }),
      );
      volumes.push(...entries.map(({ volume = {} }) => volume));
      if (seen.has(next))
        throw new CheckFailed(`ListVolumes: next_token ${JSON.stringify(next)} was already returned`, 'ListVolumes');
      seen.add(next);
      token = next;
    } while (token !== '');
    return volumes;
  }

  async patiently<Response>(attempt: () => Promise<Answer<Response>>): Promise<Answer<Response>> {
    for (let left = maxRepeats; ; left--) {
      const answer = await attempt();
      if (answer.ok || answer.code !== 'ABORTED' || left === 0) return answer;
      await delay(pollMs);
    }
  }
}

/** @throws {CheckSkipped} when there is none: that is the finding of another check. */
export function idOf(volume: Volume): string {
  const { volume_id: id = '' } = volume;
  if (id === '') throw new CheckSkipped('CreateVolume returned no volume_id, see the check volume-id');
  return id;
}

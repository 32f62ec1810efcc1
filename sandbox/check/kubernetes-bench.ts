/** The sandbox with the sidecar in front of the driver under check, and what one does in it. */
import { randomUUID } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxClient, SandboxObject } from '../api/client.ts';
import { type ClusterOptions, startCluster } from '../cluster/cluster.ts';
import { type Claim, type Node, resources, type Volume } from '../control-plane/objects.ts';
import { matchesNodeSelector } from '../control-plane/selectors.ts';
import type { BenchOptions } from './bench-options.ts';
import { throwIfGivenUp } from './check-signal.ts';
import type { DriverFacts } from './facts.ts';
import type { Ledger } from './ledger.ts';
import { makeClasses } from './kubernetes-objects.ts';
import { CheckFailed } from './outcome.ts';

export const namespace = 'default';
const pollMs = 50;

/** What a claim asks for besides a gigabyte or so, once. */
export interface ClaimWishes {
  readonly late?: boolean;
  readonly accessMode?: string;
  readonly block?: boolean;
  readonly dataSource?: { readonly kind: string; readonly name: string; readonly apiGroup?: string };
  readonly attributesClass?: string;
}

export interface BoundClaim {
  readonly name: string;
  readonly volume: Volume;
  /** The driver's id of the volume. */
  readonly handle: string;
}

/** How the sandbox is started. */
export interface KubernetesBenchOptions {
  readonly logFolder: string | undefined;
  /** What starts the sidecar, after `node`. Default: the one beside this program. */
  readonly sidecarProgram: readonly string[] | undefined;
  /** How long to wait for the driver, in milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** The nodes, each with the socket of its own driver and a sidecar with `--node-deployment`. Default: one sidecar for all. */
  readonly perNode?: readonly { readonly node: string; readonly socketPath: string }[];
  /** Takes each call of a sidecar. Default: nothing does. */
  readonly observe?: ClusterOptions['observe'];
}

/** What the sandbox needs of the bench. */
export interface DriverUnderCheck {
  readonly options: BenchOptions;
  readonly facts: DriverFacts;
  readonly ledger: Ledger;
}

export class KubernetesBench implements AsyncDisposable {
  readonly client: SandboxClient;
  /** Names of the nodes that the driver serves. */
  readonly nodes: readonly string[];
  /** Lines of the proxy about faults. */
  readonly faults: string[];
  readonly #bench: DriverUnderCheck;
  readonly #resources: AsyncDisposableStack;
  readonly #faultFile: string;
  readonly #signal: AbortSignal;

  private constructor(
    bench: DriverUnderCheck,
    parts: {
      client: SandboxClient;
      faultFile: string;
      faults: string[];
      nodes: string[];
      signal: AbortSignal;
      resources: AsyncDisposableStack;
    },
  ) {
    this.#bench = bench;
    this.#signal = parts.signal;
    this.#resources = parts.resources;
    this.#faultFile = parts.faultFile;
    this.faults = parts.faults;
    this.nodes = parts.nodes;
    this.client = parts.client;
  }

  /** @throws when the sandbox cannot be started with this driver; nothing is left running then. */
  static async start(
    bench: DriverUnderCheck,
    { logFolder, sidecarProgram, waitMs, signal, perNode, observe }: KubernetesBenchOptions,
  ): Promise<KubernetesBench> {
    await using resources = new AsyncDisposableStack();
    const folder = await mkdtemp(path.join(tmpdir(), 'check-'));
    resources.defer(() => rm(folder, { recursive: true, force: true }));
    const faultFile = path.join(folder, 'faults');
    const faults: string[] = [];
    const nodes = perNode?.map(({ node }) => ({ name: node, segments: {} })) ?? centralNodes(bench.options);
    const cluster = resources.use(
      await startCluster({
        driverSocket: perNode?.[0]?.socketPath ?? bench.options.socketPath,
        nodes,
        ...(perNode && { nodeSockets: perNode, nodeDeployment: true }),
        sidecarFlags: [...sidecarFlags(bench), ...(perNode === undefined ? centralFlags(bench) : perNodeFlags)],
        sidecarEnv: { POD_NAME: 'check' },
        faultFile,
        waitMs,
        observe,
        signal,
        report: (text) => void faults.push(text),
        ...(logFolder !== undefined && { logFolder }),
        ...(sidecarProgram && { sidecarProgram }),
      }),
    );
    makeClasses(cluster.client, bench.options, cluster.driver.name);
    return new KubernetesBench(bench, {
      client: cluster.client,
      faultFile,
      faults,
      nodes: nodes.map(({ name }) => name),
      signal,
      resources: resources.move(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** What goes wrong from now on between the sidecar and the driver, such as `CreateVolume:drop:1`; nothing without. */
  spoil(fault?: string): void {
    if (fault === undefined) {
      rmSync(this.#faultFile, { force: true });
      return;
    }
    writeFileSync(`${this.#faultFile}.new`, `${fault}\n`);
    renameSync(`${this.#faultFile}.new`, this.#faultFile);
  }

  /** Makes a claim. @returns its name. */
  claim({ late = false, accessMode = 'ReadWriteOnce', block = false, ...wishes }: ClaimWishes = {}): string {
    const name = `check-${randomUUID().slice(0, 8)}`;
    this.client.create(resources.claims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: {
        storageClassName: late ? 'check-late' : 'check',
        accessModes: [accessMode],
        volumeMode: block ? 'Block' : 'Filesystem',
        resources: { requests: { storage: String(this.#bench.options.sizeBytes) } },
        ...(wishes.dataSource !== undefined && { dataSource: wishes.dataSource }),
        ...(wishes.attributesClass !== undefined && { volumeAttributesClassName: wishes.attributesClass }),
      },
    });
    return name;
  }

  /** Makes a claim with late binding, and a pod on the node that uses it. @returns the name of both. */
  claimOfPod(node: string): string {
    const name = this.claim({ late: true });
    this.client.create(resources.pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        nodeSelector: { 'kubernetes.io/hostname': node },
        containers: [{ name: 'main', image: 'none' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
      },
    });
    return name;
  }

  /** Waits until the pod has its node. @throws {CheckFailed} after a while. */
  async scheduled(name: string, otherwise: string): Promise<void> {
    const pod = () => this.client.get(resources.pods, { namespace, name })?.['spec'] as { nodeName?: string };
    await this.until(() => pod().nodeName, otherwise);
  }

  removePod(name: string): void {
    this.client.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 });
  }

  /** Whether the node affinity of the volume admits the node. */
  admits({ spec }: Volume, node: string): boolean {
    const affinity = spec.nodeAffinity?.required;
    return (
      affinity === undefined || matchesNodeSelector(affinity, this.client.get(resources.nodes, { name: node }) as Node)
    );
  }

  /** Waits until the claim is Bound. @throws {CheckFailed} after a while, with the last event of the claim. */
  async bound(name: string): Promise<BoundClaim> {
    const volumeName = await this.#until(
      () => {
        const claim = this.client.get(resources.claims, { namespace, name }) as Claim | undefined;
        return claim?.status?.phase === 'Bound' ? claim.spec.volumeName : undefined;
      },
      () => `claim ${name} is not Bound: ${this.lastEvent(name)}`,
    );
    const volume = this.client.get(resources.volumes, { name: volumeName }) as Volume;
    const { volumeHandle: handle = '' } = (volume.spec.csi ?? {}) as { volumeHandle?: string };
    this.#bench.ledger.volumes.add(handle);
    this.#bench.ledger.everMade.add(handle);
    return { name, volume, handle };
  }

  /** Deletes the claim and waits until its volume is gone. @throws {CheckFailed} after a while. */
  async remove({ name, volume, handle }: BoundClaim): Promise<void> {
    this.client.delete(resources.claims, { namespace, name });
    const volumeName = volume.metadata.name;
    await this.#until(
      () => (this.client.get(resources.volumes, { name: volumeName }) === undefined ? true : undefined),
      () => `PersistentVolume ${volumeName} is not deleted: ${this.lastEvent(volumeName)}`,
    );
    this.#bench.ledger.volumes.delete(handle);
  }

  /** Waits for something in the API. @throws {CheckFailed} after a while. */
  async until<T>(read: () => T | undefined, otherwise: string): Promise<T> {
    return await this.#until(read, () => otherwise);
  }

  /** The newest warning about an object, else its newest event. */
  lastEvent(name: string): string {
    const events = this.client
      .list({ group: '', version: 'v1', plural: 'events' })
      .filter((event) => (event['involvedObject'] as { name?: string } | undefined)?.name === name)
      .toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)));
    const warnings = events.filter((event) => event['type'] === 'Warning');
    const last = warnings.at(-1) ?? events.at(-1);
    return last === undefined ? 'it has no events' : String(last['message']);
  }

  async #until<T>(read: () => T | undefined, otherwise: () => string): Promise<T> {
    const end = Date.now() + 3 * this.#bench.options.timeoutMs + 15_000;
    for (;;) {
      throwIfGivenUp();
      const found = read();
      if (found !== undefined) return found;
      if (Date.now() > end) throw new CheckFailed(otherwise());
      await delay(pollMs, undefined, { signal: this.#signal });
    }
  }
}

function timeOf(event: SandboxObject): string {
  const { lastTimestamp, eventTime } = event as { lastTimestamp?: string | null; eventTime?: string | null };
  return lastTimestamp ?? eventTime ?? event.metadata.creationTimestamp ?? '';
}

function centralNodes({ nodes: further }: BenchOptions): BenchOptions['nodes'] {
  const own = ['node-1', 'node-2'].filter((name) => further.every((other) => other.name !== name));
  return [...own.map((name) => ({ name, segments: {} })), ...further];
}

function sidecarFlags({ options }: DriverUnderCheck): string[] {
  return [`--timeout=${options.timeoutMs}ms`, '--retry-interval-start=200ms', '--retry-interval-max=2s'];
}

function centralFlags({ facts }: DriverUnderCheck): string[] {
  return facts.controller.has('GET_CAPACITY') ? ['--capacity-for-immediate-binding'] : [];
}

/** The nodes agree soon, and still by chance. */
const perNodeFlags = ['--node-deployment-base-delay=500ms', '--node-deployment-max-delay=2s'];

/** One cluster with a driver and its sidecar for all rows: each row has its namespace and its names. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SuiteContext, TestContext } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { claimSecret } from '../../../src/cli/why.ts';
import { ClusterReader } from '../../../src/explain/cluster-reader.ts';
import { explainClaim } from '../../../src/explain/explain-claim.ts';
import { explainVolume } from '../../../src/explain/explain-volume.ts';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { servesAttributesClasses } from '../admin.ts';
import { readerKubeconfig, readerName, whyHere } from '../why-command.ts';
import {
  referenceGrantKind,
  volumeSnapshotClassKind,
  volumeSnapshotContentKind,
  volumeSnapshotKind,
} from '../custom-kinds.ts';
import { type Fault, startDriver } from '../driver-process.ts';
import { openScene, type Scene } from '../scene.ts';
import { startSidecar } from '../sidecar-process.ts';
import { ObjectApi } from './object-api.ts';
import type { ProvisionerFlags, World } from './row.ts';
import { RowWorld } from './world.ts';

const crossNamespace = 'CrossNamespaceVolumeDataSource';
const components = [
  'leader-election',
  'attributes-classes',
  'snapshots',
  'cross-namespace-sources',
  'topology',
  'capacity',
  'attachments',
];
const sidecarFlags = [
  '--leader-election',
  '--timeout=5s',
  '--retry-interval-start=250ms',
  '--retry-interval-max=5s',
  `--feature-gates=${crossNamespace}=true`,
];
/** What reading Secrets takes. */
const secretsRole = 'csi-provisioner-why-secrets';

export class ClusterOfRows implements AsyncDisposable {
  readonly #scene: Scene;
  readonly #api: ObjectApi;
  /** Of an account that has the role in docs/why.md and nothing else. */
  readonly #kubeconfig: string;
  readonly #faults = new Map<string, Fault[]>();
  readonly #closers: (() => Promise<unknown>)[] = [];
  #serial = 0;
  #faultsSet: Promise<void> = Promise.resolve();

  private constructor(scene: Scene, kubeconfig: string) {
    this.#scene = scene;
    this.#api = ObjectApi.of(scene.cluster.adminKubeconfig);
    this.#kubeconfig = kubeconfig;
  }

  static async start(): Promise<ClusterOfRows> {
    const scene = await openScene({
      cluster: { featureGates: [crossNamespace] }, // so it is one of its own: what rows leave behind goes with it
      sidecarFlags,
      rbac: components.map((component) => `components/${component}/rbac.yaml`),
      kinds: [volumeSnapshotKind, volumeSnapshotContentKind, volumeSnapshotClassKind, referenceGrantKind],
    });
    const rows = new ClusterOfRows(scene, await readerKubeconfig(scene.cluster, scene.namespace));
    await rows.#api.create('clusterRole', {
      metadata: { name: secretsRole },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
    });
    return rows;
  }

  hasAttributesClasses(): Promise<boolean> {
    return servesAttributesClasses(this.#scene.admin);
  }

  /** A namespace with the world of one row. */
  async world(): Promise<RowWorld> {
    const { namespace: id, driver, cluster } = this.#scene;
    const namespace = `${id}-${++this.#serial}`;
    const world: RowWorld = new RowWorld({
      ...{ api: this.#api, level: 'cluster', namespace, driver: driver.driverName },
      fault: (faults) => this.#setFaults(namespace, faults),
      startProvisioner: (name, flags) => this.#startProvisioner(name, flags),
      eventually: (check) => this.#scene.eventually(check),
    });
    await world.add('namespace', { metadata: { name: namespace } });
    // as docs/why.md has it: in the namespaces of the Secrets
    await world.add('roleBinding', {
      metadata: { name: 'why' },
      subjects: [{ kind: 'ServiceAccount', namespace: cluster.sidecarNamespace, name: readerName(id) }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: secretsRole },
    });
    return world;
  }

  /** As the program would explain it. @param laterMs - how much later than now. */
  async explain(world: World, object: string, laterMs = 0): Promise<Explanation> {
    const whole = object.startsWith('pv/') ? object : `${world.namespace}/${object}`;
    return laterMs === 0 ? await whyHere(this.#kubeconfig, whole) : await this.#explainLater(whole, laterMs);
  }

  async #explainLater(object: string, laterMs: number): Promise<Explanation> {
    await using transport = connect({ kubeconfig: this.#kubeconfig, environment: {}, logger: silentLogger });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const reader = new ClusterReader({ client, signal: new AbortController().signal });
    const options = { reader, now: () => Date.now() + laterMs, secretOf: claimSecret };
    const [first = '', name = ''] = object.split('/');
    return first === 'pv'
      ? await explainVolume(name, options)
      : await explainClaim({ namespace: first, name }, options);
  }

  async #setFaults(namespace: string, faults: readonly Partial<Fault>[]): Promise<void> {
    this.#faults.set(
      namespace,
      faults.map((fault) => ({
        method: 'CreateVolume',
        ...(fault.volumeId === undefined && { parameters: { case: namespace } }),
        ...fault,
      })),
    );
    const faultsOfAll = [...this.#faults.values()].flat();
    // one after the other: each replaces the file
    this.#faultsSet = this.#faultsSet.then(() => this.#scene.driver.setFaults(faultsOfAll));
    await this.#faultsSet;
  }

  async #startProvisioner(
    driverName: string,
    { driver: driverFlags = [], sidecar = [] }: ProvisionerFlags,
  ): Promise<void> {
    const { cluster } = this.#scene;
    const folder = await mkdtemp(join(tmpdir(), 'rows-'));
    this.#closers.push(() => rm(folder, { recursive: true, force: true }));
    const driver = await startDriver({ driverName, folder, flags: driverFlags });
    this.#closers.push(() => driver.stop());
    const started = await startSidecar({
      csiAddress: driver.address,
      kubeconfig: await cluster.sidecarKubeconfig(),
      namespace: cluster.sidecarNamespace,
      flags: [...sidecarFlags, ...sidecar],
    });
    this.#closers.push(() => started.stop());
  }

  report(context: TestContext | SuiteContext): void {
    this.#scene.report(context);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
    this.#api[Symbol.dispose]();
    await this.#scene.close();
  }
}

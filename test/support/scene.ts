/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { randomBytes } from 'node:crypto';
import type { SuiteContext, TestContext } from 'node:test';
import {
  type CoreV1Event,
  type V1PersistentVolume,
  type V1PersistentVolumeClaim,
  type V1PersistentVolumeClaimSpec,
  type V1StorageClass,
} from '@kubernetes/client-node';
import { boundClaim, eventsOf, assertVolumeGone, ifFound, type Admin, type BoundClaim } from './admin.ts';
import type { Cluster, ClusterOptions } from './cluster.ts';
import { installKinds, type CustomKind } from './custom-kinds.ts';
import type { DriverProcess } from './driver-process.ts';
import { eventually, type EventuallyOptions } from './eventually.ts';
import { refusedRights } from './refused-rights.ts';
import { Stage } from './stage.ts';
import type { StartedProcess } from './started-process.ts';

export interface ClaimOptions {
  /** Default: a fresh name. */
  name?: string;
  className: string;
  /** Default 1Gi. */
  size?: string;
  accessModes?: string[];
  volumeMode?: 'Block' | 'Filesystem';
  annotations?: Record<string, string>;
  /** Further fields. */
  spec?: Partial<V1PersistentVolumeClaimSpec>;
}

/** A cluster with one driver, its sidecar and a namespace of its own: what most test files need. */
export interface Scene {
  readonly cluster: Cluster;
  readonly admin: Admin;
  readonly driver: DriverProcess;
  /** The sidecar that was started last. */
  readonly sidecar: StartedProcess;
  readonly namespace: string;
  /**
   * Starts a sidecar with the scene's flags and further ones, in place of one that has ended. Beside one that runs it
   * needs another host name, unless they elect a leader. `program`: another one in its place.
   */
  startSidecar(flags?: readonly string[], hostName?: string, program?: string): Promise<StartedProcess>;
  /** Makes a class of the scene's driver and gives its name; `options` win over what is usual. */
  createClass(options?: Partial<V1StorageClass>): Promise<string>;
  createClaim(options: ClaimOptions): Promise<V1PersistentVolumeClaim>;
  readClaim(name: string): Promise<V1PersistentVolumeClaim>;
  deleteClaim(name: string): Promise<void>;
  /** Waits until the claim is bound. */
  bound(claimName: string, options?: Pick<EventuallyOptions, 'withinMs'>): Promise<BoundClaim>;
  /** Waits until the PersistentVolume is gone. */
  volumeGone(name: string): Promise<void>;
  /** Waits for an event with this reason about the claim and gives the newest one. */
  event(claim: V1PersistentVolumeClaim, reason: string): Promise<CoreV1Event>;
  events(claim: V1PersistentVolumeClaim): Promise<CoreV1Event[]>;
  /** Events about a volume, in the order in which they first happened. */
  volumeEvents(volume: V1PersistentVolume): Promise<CoreV1Event[]>;
  /** `eventually`, given up early when the sidecar or the driver has ended. */
  eventually<T>(check: () => T | Promise<T>): Promise<T>;
  /** For `afterEach`: prints what the processes wrote if the test failed. */
  report(context: TestContext | SuiteContext): void;
  /** For `after`: removes what the scene made and ends its processes. @throws when a sidecar was refused a right. */
  close(): Promise<void>;
}

export interface SceneOptions {
  /** Default: a fresh one. Scenes that name the same driver must not run at the same time. */
  driverName?: string;
  /** The command of the first sidecar. Default: the program under test. */
  program?: string | undefined;
  driverFlags?: readonly string[];
  sidecarFlags?: readonly string[];
  /** Host name of the first sidecar; default: the machine's. */
  hostName?: string;
  /**
   * The test restarts the API server, which refuses everything for a moment until it has read its roles. Only then is a
   * right that was refused no fault.
   */
  restartsApiServer?: boolean;
  cluster?: ClusterOptions;
  /** Files below deploy/ with rights that the sidecar gets besides those of the base. */
  rbac?: readonly string[];
  /** Makes what a sidecar needs before it starts. @returns environment variables for it. */
  beforeSidecar?: (world: { admin: Admin; cluster: Cluster; id: string }) => Promise<Record<string, string>>;
  /** Kinds that are installed before the sidecar starts. */
  kinds?: readonly CustomKind[];
}

/** A sidecar and what it takes for its host name; `undefined` for the machine's. */
type HostedProcess = StartedProcess & { hostName: string | undefined };

/** Starts cluster, driver and sidecar. The names are new in each scene, so that scenes may share a cluster. */
export async function openScene(options: SceneOptions = {}): Promise<Scene> {
  const { driverFlags, sidecarFlags = [], kinds = [], program: firstProgram } = options;
  const id = `e2e-${randomBytes(4).toString('hex')}`;
  const stage = await Stage.open({ name: id, cluster: options.cluster, rbac: options.rbac ?? [] });
  try {
    const { cluster, admin } = stage;
    await admin.core.createNamespace({ body: { metadata: { name: id } } });
    stage.defer(() => admin.core.deleteNamespace({ name: id }));
    stage.defer(await installKinds(cluster, admin, kinds));
    const driver = await stage.startDriver(options.driverName ?? `${id}.example.com`, driverFlags);
    const environment = await options.beforeSidecar?.({ admin, cluster, id });
    const launch = async (
      flags: readonly string[] = [],
      hostName?: string,
      program = firstProgram,
    ): Promise<HostedProcess> => {
      const started = await stage.startSidecar({
        csiAddress: driver.address,
        flags: ['--timeout=30s', '--retry-interval-start=250ms', '-v=5', ...sidecarFlags, ...flags],
        environment,
        hostName,
        program,
      });
      return { ...started, hostName };
    };
    const sidecars = [await launch([], options.hostName)];
    const current = (): StartedProcess => sidecars.at(-1)!;
    stage.defer(() => {
      const refusals = sidecars.flatMap((sidecar) => refusedRights(sidecar.log()));
      if (refusals.length > 0 && options.restartsApiServer !== true)
        throw new Error(`the API server refused the sidecar a right: ${refusals[0] ?? ''}`);
    });
    const watched = async <T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> =>
      await eventually(check, {
        ...options,
        hopeless: () => {
          if (!driver.running()) return 'the driver has ended';
          if (sidecars.some((sidecar) => sidecar.running())) return undefined;
          return `the sidecar has ended: ${current().log().trimEnd().split('\n').at(-1) ?? ''}`;
        },
      });
    const readClaim = (name: string) => admin.core.readNamespacedPersistentVolumeClaim({ name, namespace: id });
    let serial = 0;
    return {
      cluster,
      admin,
      driver,
      get sidecar() {
        return current();
      },
      namespace: id,
      async startSidecar(flags, hostName, program) {
        const twin = sidecars.some((sidecar) => sidecar.hostName === hostName && sidecar.running());
        if (twin && !sidecarFlags.includes('--leader-election')) throw new Error('the sidecar still runs');
        const started = await launch(flags, hostName, program);
        sidecars.push(started);
        return started;
      },
      async createClass(options = {}) {
        serial += 1;
        const name = `${id}-${serial}`;
        await admin.storage.createStorageClass({
          body: { metadata: { name }, provisioner: driver.driverName, ...options },
        });
        stage.defer(() => ifFound(admin.storage.deleteStorageClass({ name })));
        return name;
      },
      async createClaim({ name = `claim-${++serial}`, className, size = '1Gi', accessModes, volumeMode, ...rest }) {
        return await admin.core.createNamespacedPersistentVolumeClaim({
          namespace: id,
          body: {
            metadata: { name, ...(rest.annotations && { annotations: rest.annotations }) },
            spec: {
              storageClassName: className,
              accessModes: accessModes ?? ['ReadWriteOnce'],
              resources: { requests: { storage: size } },
              ...(volumeMode === undefined ? {} : { volumeMode }),
              ...rest.spec,
            },
          },
        });
      },
      readClaim,
      async deleteClaim(name) {
        await admin.core.deleteNamespacedPersistentVolumeClaim({ name, namespace: id });
      },
      async bound(claimName, options) {
        return await watched(() => boundClaim(admin, id, claimName), options);
      },
      async volumeGone(name) {
        await watched(() => assertVolumeGone(admin, name));
      },
      async event(claim, reason) {
        return await watched(async () => {
          const events = await eventsOf(admin, id, claim.metadata?.uid ?? '');
          const found = events.findLast((event) => event.reason === reason);
          const reasons = events.map((event) => event.reason).join(', ');
          if (found === undefined) throw new Error(`no event ${reason} about the claim, only: ${reasons}`);
          return found;
        });
      },
      events: (claim) => eventsOf(admin, id, claim.metadata?.uid ?? ''),
      volumeEvents: (volume) => eventsOf(admin, 'default', volume.metadata?.uid ?? ''),
      eventually: (check) => watched(check),
      report(context) {
        if (!('passed' in context) || context.passed) return;
        const logs = [
          ...sidecars.map((each, index) => [`sidecar ${index + 1}`, each.log()]),
          ['driver', driver.log()],
          [cluster.name, cluster.log()],
        ];
        for (const [who, text] of logs) console.error(`--- log of ${who ?? ''}\n${text ?? ''}`);
      },
      close: () => stage[Symbol.asyncDispose](),
    };
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}

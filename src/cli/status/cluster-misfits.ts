/** What in the cluster does not fit this sidecar, for the status page: it can be seen before a claim waits for it. */
import type { Clock } from '../../base/clock.ts';
import { nearestName } from '../../base/near-name.ts';
import { shortValue } from '../../base/short-value.ts';
import type { ReportedMisfit } from '../../diagnostics/status-page/status-report.ts';
import { csiDrivers } from '../../explain/cluster-objects.ts';
import { ClusterReader, found } from '../../explain/cluster-reader.ts';
import { mayUse } from '../../kube/client/own-account.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { type Lease, leases } from '../../kube/election/lease-record.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import type { StorageClass } from '../../provision/objects.ts';

/** What was read of the cluster counts for so long, in milliseconds. */
const keptMs = 60_000;
/** The page does not wait longer for it, in milliseconds. */
const maxWaitMs = 2000;
/** How far clocks of nodes may be apart before a Lease counts as expired, in milliseconds. */
const clockSkewMs = 30_000;
const usualLeaseSeconds = 15;

interface ClusterMisfitsOptions {
  client: KubeClient;
  clock: Clock;
  driverName: string;
  /** All of the cluster. */
  classes: () => Iterable<StorageClass>;
  /** Whether this sidecar publishes CSIStorageCapacity objects. */
  publishesCapacity: boolean;
  /** The Lease of this sidecar; undefined without leader election. */
  lease: { namespace: string; name: string } | undefined;
  /** Of node deployment: each node has a sidecar. */
  isOnEachNode: boolean;
  signal: AbortSignal;
}

/** `storage.k8s.io/v1` CSIDriver. */
interface CsiDriver extends KubeObject {
  spec?: { storageCapacity?: boolean };
}

/** Reads the cluster when the page is requested, at most once a minute, and only what the account is permitted to read. */
export class ClusterMisfits {
  readonly #options: ClusterMisfitsOptions;
  #ofCluster: readonly ReportedMisfit[] = [];
  #readAtMs = -Infinity;

  constructor(options: ClusterMisfitsOptions) {
    this.#options = options;
  }

  async list(): Promise<ReportedMisfit[]> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#readAtMs >= keptMs) {
      this.#readAtMs = nowMs;
      await this.#read();
    }
    return [...this.#ofClasses(), ...this.#ofCluster];
  }

  #ofClasses(): ReportedMisfit[] {
    const { classes, driverName } = this.#options;
    return [...classes()]
      .filter(({ provisioner }) => provisioner !== driverName && nearestName(provisioner, [driverName]) !== undefined)
      .map(({ metadata, provisioner }) => ({
        message: `StorageClass ${metadata.name} names the provisioner ${shortValue(provisioner)}, which is nearly the name of this driver, ${driverName}: unless there is such a provisioner, claims of the class get no volume.`,
        cure: `Delete the class and create it again with the provisioner ${driverName}: it cannot be edited.`,
      }));
  }

  async #read(): Promise<void> {
    const { client, signal } = this.#options;
    const ending = AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)]);
    const reader = new ClusterReader({ client, signal: ending });
    try {
      this.#ofCluster = (await Promise.all([this.#capacity(reader, ending), this.#leaders(reader, ending)])).flat();
    } catch {
      // the API server does not respond, which the page says elsewhere
    }
  }

  async #capacity(reader: ClusterReader, signal: AbortSignal): Promise<ReportedMisfit[]> {
    const { client, driverName: name, publishesCapacity } = this.#options;
    const mayRead = await mayUse(client, csiDrivers, { namespace: '', name, verbs: ['get'] }, { signal });
    const driver = mayRead ? found(await reader.get<CsiDriver>(csiDrivers, { name })) : undefined;
    if (driver === undefined || (driver.spec?.storageCapacity ?? false) === publishesCapacity) return [];
    return [
      publishesCapacity
        ? {
            message: `CSIDriver ${name} does not have storageCapacity: true: the scheduler does not read the CSIStorageCapacity objects that this sidecar publishes.`,
            cure: 'Set storageCapacity: true in the CSIDriver, or leave out --enable-capacity.',
          }
        : {
            message: `CSIDriver ${name} has storageCapacity: true, and this sidecar publishes no CSIStorageCapacity objects: unless another one does, the scheduler finds no storage on any node, and Pods with a claim of a WaitForFirstConsumer class are not scheduled.`,
            cure: 'Set --enable-capacity, with its rights, or storageCapacity: false in the CSIDriver.',
          },
    ];
  }

  /** A Lease with the same name in another namespace is of another sidecar of the driver. */
  async #leaders(reader: ClusterReader, signal: AbortSignal): Promise<ReportedMisfit[]> {
    const { client, lease, isOnEachNode, driverName } = this.#options;
    if (lease === undefined || isOnEachNode) return [];
    const { name } = lease;
    if (!(await mayUse(client, leases, { namespace: '', name: '', verbs: ['list'] }, { signal }))) return [];
    const all = found(await reader.list<Lease>(leases, { fieldSelector: `metadata.name=${name}` })) ?? [];
    return all
      .filter(({ metadata }) => metadata.namespace !== lease.namespace)
      .filter((other) => this.#isHeld(other))
      .map(({ metadata: { namespace = '' }, spec }) => ({
        message: `${shortValue(spec?.holderIdentity ?? '')} leads for driver ${driverName} as well, with Lease ${namespace}/${name}: both provision the same claims.`,
        cure: `Remove one of the two drivers, or give it another name.`,
      }));
  }

  #isHeld({ spec = {} }: Lease): boolean {
    const { holderIdentity, renewTime, leaseDurationSeconds } = spec;
    const silentMs = this.#options.clock.wallMs() - Date.parse(renewTime ?? '');
    return (
      (holderIdentity ?? '') !== '' && silentMs <= (leaseDurationSeconds ?? usualLeaseSeconds) * 1000 + clockSkewMs
    );
  }
}

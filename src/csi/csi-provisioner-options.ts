import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Lister } from '../kube/cache/store.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { Recorder } from '../kube/events/event-recorder.ts';
import type { PersistentVolume, PersistentVolumeClaim, ReferenceGrant, StorageClass } from '../provision/objects.ts';
import type { BackendProgress } from '../provision/recoverable.ts';
import type { VolumeAttachment } from './attachments.ts';
import type { AttributesClassApi } from './volume-attributes-class.ts';
import type { ControllerCalls } from './csi-calls.ts';
import type { DriverCapabilities } from './driver-info.ts';
import type { MigrationHook } from './migration/driver-migration.ts';
import type { PlanWaits } from './plan-waits.ts';
import type { OpenSource } from './sources/data-source.ts';
import type { TopologyHook } from './topology/planned-topology.ts';

/** Everything a `CsiProvisioner` works with. Caches must be synced before the first call. */
export interface CsiProvisionerOptions {
  driverName: string;
  /** From `provisionerIdentity`: written on every volume. */
  identity: string;
  /** Read at every attempt: the capabilities may change with a reconnection. */
  capabilities: () => DriverCapabilities;
  /** In the sidecar `Driver.calls`. */
  controller: ControllerCalls;
  /** Which of these calls the driver has read; in the sidecar `Driver.progress`. Absent: all of them. */
  progress?: BackendProgress | undefined;
  client: KubeClient;
  /**
   * All claims, by `namespace/name`. Of bound ones these fields suffice: metadata, class, volume name and mode,
   * requests, data sources, phase.
   */
  claims: Lister<PersistentVolumeClaim>;
  classes: Lister<StorageClass>;
  /** With the index `attachmentsByVolume`. Needed for drivers that attach volumes; absent: nothing is checked. */
  attachments?: Pick<Lister<VolumeAttachment>, 'byIndex'> | undefined;
  /** Events of the component `external-provisioner`. */
  recorder: Recorder;
  logger: Logger;
  clock: Clock;
  /** Milliseconds that one CSI call may take, and all cleanup calls of one attempt together. */
  timeoutMs: number;
  /** `--volume-name-prefix`. */
  volumeNamePrefix: string;
  /** `--volume-name-uuid-length`; -1 keeps the claim's UID whole. */
  volumeNameUuidLength: number;
  /** `--default-fstype`; empty: none. */
  defaultFsType: string;
  /** `--extra-create-metadata`. */
  extraCreateMetadata: boolean;
  /** `--controller-publish-readonly`. */
  controllerPublishReadOnly: boolean;
  /** `--prevent-volume-mode-conversion`. */
  preventVolumeModeConversion: boolean;
  /** Feature gates that count here. */
  gates: {
    crossNamespaceVolumeDataSource: boolean;
    volumeAttributesClass: boolean;
  };
  /** Used where the gate is on. Absent: attributes classes are served in v1. */
  attributesClasses?: AttributesClassApi | undefined;
  /** Grants of all namespaces, watched only with their gate; absent: nothing is granted. */
  referenceGrants?: Lister<ReferenceGrant> | undefined;
  /** Sources of all volumes in progress, by `openSource`: their protection stays. Default: none. */
  plannedSources?: (() => Iterable<OpenSource>) | undefined;
  /** Has claims tried again whose plan failed. Absent: they are tried again after their pause. */
  planWaits?: Pick<PlanWaits, 'during' | 'forget'> | undefined;
  /** Present when the gate `Topology` is on. */
  topology?: TopologyHook | undefined;
  /** Present for drivers that replaced an in-tree plugin. */
  migration?: MigrationHook | undefined;
  /** Present in node deployment. */
  node?: NodeHook | undefined;
}

/** Ownership when every node runs its own instance; absent in a central deployment. */
export interface NodeHook {
  readonly nodeName: string;
  /**
   * Whether this instance provisions the claim now. Does not wait: for a claim that may become this node's the result is
   * false, and the claim is requeued when it has.
   *
   * @param storageClass - the claim's class where the caller is about to provision: then what is thrown becomes the
   * claim's event.
   */
  ownsClaim(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): Promise<boolean>;
  /** The claim is gone or has its volume. Safe to repeat. */
  forgetClaim(uid: string): void;
  /** The driver has deleted a volume: claims that were declined for their size may fit now. */
  roomFreed(): void;
  /** Whether the volume is reachable from this node. @throws when its node affinity cannot be read. */
  ownsVolume(volume: PersistentVolume): boolean;
}

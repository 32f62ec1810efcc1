/**
 * The public surface of the package: what a program of its own needs to provision volumes of another kind of storage.
 * `docs/write-a-provisioner.md` leads through it. What it is made of is in `csi-provisioner/kube`, and what it is tested with in
 * `csi-provisioner/testing`; nothing else in the package is meant to be imported.
 */
import './base/require-node.ts'; // first: what follows may not even load on an older Node.js
import { connect as connectTo, type ConnectOptions as FullConnectOptions } from './kube/client/connect.ts';
import { KubeConfigError } from './kube/credentials/kubeconfig-files.ts';
import type { Transport } from './kube/client/transport.ts';

/** Where the API server is; every field has a default. */
export interface ConnectOptions extends Omit<FullConnectOptions, 'environment'> {
  /** The environment variables. Default: those of this process. */
  environment?: Record<string, string | undefined> | undefined;
}

/**
 * Finds the API server and who we are there: `kubeconfig`, else the files that `KUBECONFIG` lists, else `master`, else
 * the service account of the pod. Credentials are renewed as they change. Nothing is sent yet; dispose the transport at
 * the end, with `await using`.
 *
 * @throws {KubeConfigError} when nothing usable is found, or a file of it cannot be read. Its message says what is wrong
 * and what to do about it, its `cure` only the second.
 */
export function connect({ environment, ...options }: ConnectOptions = {}): Transport {
  try {
    // eslint-disable-next-line no-restricted-properties -- the edge of the library, and only a default
    return connectTo({ ...options, environment: environment ?? process.env });
  } catch (error) {
    throw error instanceof KubeConfigError ? error.withCure() : error;
  }
}

// The whole process
export { runProvisioner } from './run/run-provisioner.ts';
export type { RunProvisionerOptions } from './run/run-provisioner-options.ts';
export type { ProvisionerParts } from './run/provisioner-parts.ts';
export { compatibleElection } from './run/election.ts';
export type { ElectionSettings } from './run/election.ts';
export type { HttpOptions } from './run/endpoint.ts';
export type { HealthCheck } from './run/health.ts';
export type { LockNotes } from './run/provisioner-parts.ts';
export type { SignalSource } from './run/shutdown.ts';

// The controller, and what a kind of storage has to fulfil
export { ProvisionController } from './provision/provision-controller.ts';
export type { ClaimProgress, ClaimStep, DeliberateWait } from './provision/object-progress.ts';
export type { ControllerStatus, OpenIntent, QueueStatus } from './provision/controller-status.ts';
export type { LastError } from './provision/last-errors.ts';
export type { ReleasedVolume, ReleaseStep } from './provision/object-progress.ts';
export type { Span, SpanAttributes, Tracer } from './base/tracing.ts';
export type { RunOptions } from './provision/run-workers.ts';
export type { ProvisionControllerOptions } from './provision/provision-controller-options.ts';
export type { ProvisionObserver } from './provision/provision-controller-options.ts';
export {
  type Evidence,
  IgnoredError,
  ProvisionError,
  type Provisioner,
  type ProvisionContext,
  type ProvisioningState,
  type ProvisionOptions,
  VolumeInUseError,
} from './provision/provisioner.ts';
export type { BackendProgress } from './provision/recoverable.ts';
export {
  type FulfilContext,
  type Plan,
  Planned,
  type Recoverable,
  type RevokeContext,
} from './provision/recoverable.ts';
export { pvFor, type PvForOptions } from './provision/volume-template.ts';
export { requireIdentity } from './provision/volume-template.ts';
export { classOfVolume } from './provision/read-parameters.ts';
export {
  type ClassParameters,
  ParameterError,
  readParameters,
  type ReadParametersOptions,
} from './provision/read-parameters.ts';
export {
  provisionInformers,
  type ProvisionInformers,
  type ProvisionInformersOptions,
  uidIndex,
} from './provision/cache/informers.ts';
export type { KeptFields } from './provision/cache/kept-fields.ts';

// The objects of Kubernetes
export {
  type AccessMode,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type PersistentVolumeSpec,
  type QuantityText,
  type ReclaimPolicy,
  type StorageClass,
  storageClasses,
  type TopologySelectorTerm,
  type TypedLocalObjectReference,
  type TypedObjectReference,
  type VolumeBindingMode,
  type VolumeMode,
} from './provision/objects.ts';
export type {
  CsiVolumeSource,
  FcVolumeSource,
  FlexVolumeSource,
  HostPathVolumeSource,
  InTreeSourceField,
  IscsiVolumeSource,
  LocalVolumeSource,
  NfsVolumeSource,
  SecretReference,
  VolumeSources,
} from './provision/objects.ts';
export type {
  KubeObject,
  ObjectMeta,
  ObjectName,
  ObjectReference,
  OwnerReference,
  Resource,
  Status,
  StatusCause,
} from './kube/kube-object.ts';
export { capacityText, QuantityError, quantityBytes } from './base/quantity.ts';

// What many kinds of storage need
export { GidAllocator, gidAnnotation, type GidRange, gidRange } from './provision/gid-allocator.ts';
export { KeyedLocks } from './base/keyed-locks.ts';
// Text and directories that come from users
export { durationMs } from './base/go-duration.ts';
export { parseGoBool, StrconvError } from './base/go-bool.ts';
export { containedPath, pathComponents, PathError } from './base/path-components.ts';
export { makeDirectory } from './base/make-directory.ts';
export { type EntryName, NotDirectoryError, OpenedDirectory } from './base/opened-directory.ts';
export { removeTree } from './base/remove-tree.ts';
export { errnoOf } from './base/errno.ts';

// The Kubernetes client
export type { Transport } from './kube/client/transport.ts';
export { KubeConfigError };
export {
  type CallOptions,
  type GetOptions,
  KubeClient,
  type ListOptions,
  type PatchType,
} from './kube/client/kube-client.ts';
export type { RequestObservation, RequestPause } from './kube/client/request.ts';
export {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ExpiredError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  type RequestInfo,
  TooManyRequestsError,
  TransportError,
  UnauthorizedError,
} from './kube/client/api-error.ts';
export type { Lister } from './kube/cache/store.ts';
export type { EventType } from './kube/events/event-correlator.ts';
export type { Recorder, RecordOptions } from './kube/events/event-recorder.ts';

// Back-off and metrics
export { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from './kube/queue/rate-limiter.ts';
export { createRegistry, gauge, type MetricOptions, type MetricRegistry } from './base/metrics.ts';
export { type ControllerMetrics, prometheusMetrics } from './provision/controller-metrics.ts';

// What everything is given
export { untilAborted } from './base/abort.ts';
export { type Clock, systemClock, type Timer } from './base/clock.ts';
export { type Logger, silentLogger } from './base/logger.ts';
export { type LogLevel, textLogger, type TextLoggerOptions } from './base/text-logger.ts';

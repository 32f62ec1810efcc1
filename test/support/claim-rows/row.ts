/**
 * Situations of claims and volumes: what `why` says of each, and what ends it. One table for two levels: a recorded set of objects
 * in an API server without controllers, and a control plane with a sidecar and a driver.
 */
import type { Cause } from '../../../src/explain/causes/cause.ts';
import type { Verdict } from '../../../src/explain/explanation.ts';
import type { Fault } from '../driver-process.ts';

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string> | undefined;
    finalizers?: string[];
    deletionTimestamp?: string;
    ownerReferences?: object[];
    [field: string]: unknown;
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

/** One that is to be created: its kind has the rest. */
export interface NewObject {
  metadata: Partial<KubeObject['metadata']>;
  spec?: object;
  status?: object;
  [field: string]: unknown;
}

/** Names an object; without a namespace: one of the row's, where the kind has namespaces. */
export interface ObjectName {
  kind: Kind;
  name: string;
  namespace?: string;
}

/** Kinds by the name that is used for them in rows; see `kinds.ts`. */
export type Kind = keyof typeof import('./kinds.ts').kinds;

/** A cluster as a row arranges it. All names are the row's own, so that rows may run at once. */
export interface World {
  readonly level: 'recorded' | 'cluster';
  readonly namespace: string;
  /** The driver whose provisioner works; on a cluster the same for all rows. */
  readonly driver: string;
  /** A name for an object that has no namespace; without `part`, that of the class. */
  name(part?: string): string;
  /** Creates an object, then sets its status if it has one. By default it has the name and the namespace of the row. */
  add(kind: Kind, object: NewObject): Promise<KubeObject>;
  /** A JSON merge patch; `status` is patched as such. */
  patch(object: ObjectName, change: object): Promise<void>;
  read(object: ObjectName): Promise<KubeObject | undefined>;
  /** A Pod goes at once, unless it is to end gracefully: then it stays, as no kubelet confirms its end. */
  remove(object: ObjectName & { graceful?: boolean }): Promise<void>;
  /** As a scheduler places a Pod on a node. */
  place(pod: string, node: string): Promise<void>;
  /** Class `name()` of the driver. */
  addClass(fields?: ClassFields): Promise<KubeObject>;
  /** Claim `c` of class `name()`. */
  addClaim(spec?: object, options?: ClaimOptions): Promise<KubeObject>;
  /** A CSI volume of the driver, with a handle that the driver does not know. */
  addVolume(spec?: object, options?: Partial<KubeObject['metadata']> & { status?: object }): Promise<KubeObject>;
  /** Pod `p` that uses claim `c`. */
  addPod(spec?: object, options?: { name?: string; claim?: string; status?: object }): Promise<KubeObject>;
  /** A node `name('node')` with a CSINode, as its kubelet would write them. */
  addNode(options?: { name?: string; labels?: Record<string, string>; driver?: string | null }): Promise<KubeObject>;
  /** An event about an object. */
  addEvent(about: ObjectName, event: RecordedEvent): Promise<void>;
  /** kube-controller-manager hands a claim to the driver: a recorded set gets the annotation; a cluster does so by itself. */
  handedOver(claim?: string): Promise<void>;
  /**
   * A claim gets its volume: a recorded set from here, a cluster from the driver and kube-controller-manager.
   *
   * @returns the name of the volume.
   */
  bound(claim?: string): Promise<string>;
  /** The scheduler places a Pod on the node that its nodeSelector names (`kubernetes.io/hostname`): likewise. */
  placed(pod?: string): Promise<void>;
  /** The one that `bound` has returned last. */
  readonly volume: string;
  /** What the driver does to calls for claims of the class, from then on; nothing: it works. Without effect on a recorded set. */
  fault(...faults: Partial<Fault>[]): Promise<void>;
  /**
   * A driver and a sidecar of the row alone; it costs seconds, so only where the flags matter.
   *
   * @returns the name of the driver.
   */
  startProvisioner(flags?: ProvisionerFlags): Promise<string>;
  /** Waits until the check no longer throws. */
  eventually<T>(check: () => T | Promise<T>): Promise<T>;
}

/** Fields of a StorageClass. */
export interface ClassFields {
  metadata?: Partial<KubeObject['metadata']>;
  parameters?: Record<string, string>;
  [field: string]: unknown;
}

export interface ClaimOptions {
  name?: string;
  namespace?: string;
  annotations?: Record<string, string>;
  finalizers?: string[];
  status?: object;
}

export interface ProvisionerFlags {
  driver?: readonly string[];
  sidecar?: readonly string[];
}

export interface RecordedEvent {
  reason: string;
  message: string;
  type?: 'Normal' | 'Warning';
  /** Default: the provisioner of the driver. */
  component?: string;
  msAgo?: number;
  count?: number;
}

/** What both kinds of rows have. */
interface Situation {
  /** What is the case, in words: the title of the tests, and the name of the row in docs/stuck-claims.md. No two are the same. */
  title: string;
  /** Objects as people, kubelets, drivers and programs outside of the control plane write them. */
  arrange: (world: World) => Promise<unknown>;
  /** What control plane and provisioner write then; for a recorded set. Absent: the row is not tested on that level. */
  recorded?: (world: World) => Promise<unknown>;
  /** Further steps on a cluster, such as to wait for a state and go on; or why the row cannot be made there. */
  cluster?: ((world: World) => Promise<unknown>) | { not: string };
  /** What some versions of Kubernetes do not serve: the row is skipped there. */
  needs?: 'attributes classes';
  /** As for `why`, without a namespace: `c` (default), or `pv/NAME`. */
  object?: string | ((world: World) => string);
  /** Somebody asks that much later, in milliseconds. */
  laterMs?: number;
  /** What is done then, on a cluster. */
  cure?: (world: World) => Promise<unknown>;
  /** How it ends on a cluster: the claim is bound, or what is explained is gone. */
  ends?: 'bound' | 'gone';
}

export interface StuckRow extends Situation {
  verdict: Verdict;
  cause: Cause | null;
  /** In the message. */
  says: RegExp;
  /** In the cure. */
  advises: RegExp;
}

/** Nothing is wrong: whenever somebody asks, until it has ended, `why` names one of these causes, and says that nobody has to act. */
export interface HealthyRow extends Situation {
  healthy: readonly Cause[];
}

export type Row = StuckRow | HealthyRow;

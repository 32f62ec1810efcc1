/** The cluster of end-to-end tests and scripts: the sandbox, or the real control plane. */
import type { AuditEvent } from './control-plane/audit-log.ts';
import type { TcpBalancer } from './tcp-balancer.ts';

export type ClusterTarget = 'sandbox' | 'kubernetes';

/** What is asked of a cluster beyond the usual. */
export interface ClusterOptions {
  /** Default: the environment of this process. */
  env?: NodeJS.ProcessEnv;
  /** Picks the cluster in place of the environment; it is a new one then. */
  target?: ClusterTarget | undefined;
  /** A cluster that no other test file uses, whose API server may be killed; default: it may be a shared one. */
  ownCluster?: boolean;
  /** Features to switch on in a real API server; the sandbox has them on. Implies `ownCluster`. */
  featureGates?: readonly string[];
  /** The only version in which attributes classes are served, as in a cluster of 1.31 to 1.33. Implies `ownCluster`. */
  attributesClasses?: 'v1beta1' | 'none' | undefined;
  /** Minor version of Kubernetes to begin with, such as `1.32`; not in the sandbox. Implies `ownCluster`. */
  kubernetes?: string | undefined;
  /** A second API server on the same etcd, as in a highly available control plane. Not in the sandbox; implies `ownCluster`. */
  secondServer?: SecondServerOptions;
  /** Whether `requests` is there. Not in the sandbox; implies `ownCluster`. */
  auditLog?: boolean;
  /** Of the sandbox alone: whether faults can be injected, and whether it has accounts and TLS; see `startSandbox`. */
  sandbox?: { faults?: boolean; rbac?: boolean };
}

/** Programs of the second API server; the first one, controller manager and scheduler are as the other options say. */
export interface SecondServerOptions {
  /** Minor version of Kubernetes. */
  kubernetes: string;
  /** As of the cluster. */
  attributesClasses?: ClusterOptions['attributesClasses'];
  /** Its feature gate is off: it drops the class of a new claim or volume, though it may serve the classes. Not from 1.36 on. */
  dropsAttributesClasses?: boolean;
}

/** The API server of a cluster of the test's own. */
export interface ApiServer {
  /** Ends it at once, without goodbye to its clients. */
  kill(): Promise<void>;
  /** Starts it again on the same port with its objects, and waits until it is ready. */
  restart(): Promise<void>;
  /** It stands still until `goOn`: its connections stay open, new ones are accepted, and nothing is answered. */
  standStill(): void;
  goOn(): void;
  /** Replaces the whole control plane but for its etcd by that of another minor version, newer or older, with its default flags. */
  upgrade?(minor: string): Promise<void>;
  /** Copies the data of its etcd, which is away for a moment. */
  backUp?(): Promise<void>;
  /** Restarts the whole control plane on that copy: what came since is gone, and resource versions are older. */
  restore?(): Promise<void>;
}

/** Two API servers on one etcd, behind one address. */
export interface ServerPair {
  /** The address: the connections of sidecars go to the servers in turn. */
  readonly balancer: TcpBalancer;
  /** The first one is that of the other members of the cluster. */
  readonly servers: readonly [ServerOfPair, ServerOfPair];
}

export interface ServerOfPair {
  /** Path of a kubeconfig with all rights, past the balancer. */
  readonly adminKubeconfig: string;
  /** What it has answered so far, oldest first. */
  requests(): AsyncIterable<AuditEvent>;
}

export interface Cluster {
  readonly name: ClusterTarget;
  /** Path of a kubeconfig with all rights. */
  readonly adminKubeconfig: string;
  /** Namespace of the sidecar's service account, its lease and its notes. */
  readonly sidecarNamespace: string;
  /** Only of a cluster that was asked for with `ownCluster`. */
  readonly apiServer?: ApiServer;
  /** Only of a cluster that was asked for with `secondServer`. */
  readonly serverPair?: ServerPair;
  /** `http://127.0.0.1:<port>`, of a real control plane of its own. */
  readonly etcdUrl?: string;
  /** What its API server has answered so far, oldest first; only with `auditLog`. */
  requests?(): AsyncIterable<AuditEvent>;
  /** Only of a cluster that was asked for with `ownCluster`; not of the sandbox. While it is stopped, nobody binds. */
  readonly controllerManager?: { stop(): Promise<void>; start(): Promise<void> };
  /** Path of a kubeconfig with the rights that `deploy/base` and `deploy/components/secrets` give, no more. */
  sidecarKubeconfig(): Promise<string>;
  /** Gives the sidecar's account the further rights of these manifests, until the returned function takes them back. */
  grantSidecar(manifests: string): Promise<() => Promise<void>>;
  /** Applies manifests and gives the path of a kubeconfig with the rights of one of their service accounts, no more. */
  accountKubeconfig(manifests: string, account: ServiceAccountName): Promise<string>;
  /** What the cluster's own programs wrote, for failed tests. */
  log(): string;
  stop(): Promise<void>;
}

export interface ServiceAccountName {
  namespace: string;
  name: string;
}

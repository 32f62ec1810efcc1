import type { KubeObject, PersistentVolume, StorageClass } from '../index.ts';

/** What a story of the suite happens on: a cluster of its own, and an empty folder. */
export interface Bench {
  /** An empty folder, which is removed at the end of the story. */
  readonly folder: string;
  /** The kubeconfig for the provisioner; it is also in the environment variable `KUBECONFIG` of its process. */
  readonly kubeconfig: string;
  /** Aborts when the story ends. */
  readonly signal: AbortSignal;
}

/** How the provisioner is started. */
export interface ProvisionerCommand {
  /** The program and its arguments. */
  command: readonly string[];
  /** Added to the environment of this process; undefined removes a variable. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Default: the folder of this process. */
  cwd?: string;
}

/** Called once for each story; the process is started several times with the result. */
export type ProvisionerStart = (
  bench: Bench,
) => readonly string[] | ProvisionerCommand | Promise<readonly string[] | ProvisionerCommand>;

/** Writes into the storage of a volume, and finds it again. */
export interface VolumeData {
  /** Called once the claim is Bound. */
  write(volume: PersistentVolume, bench: Bench): void | Promise<void>;
  /** @throws when what was written is not there. */
  check(volume: PersistentVolume, bench: Bench): void | Promise<void>;
}

/** A moment at which the provisioner is killed besides those of the suite, such as between two parts of the storage. */
export interface KillMoment {
  /** Completes "killed ...". */
  title: string;
  /** Of which work it is a part. */
  during: 'fulfil' | 'delete';
  /** Asked without a pause while the work goes on, until it is true. */
  isReached(bench: Bench): boolean | Promise<boolean>;
}

/** What `testProvisioner` needs to know. */
export interface TestProvisionerOptions {
  /** What the classes have as their provisioner. */
  provisionerName: string;
  /** The storage that exists at the moment, however it came there: one name for each, such as the names of the folders. */
  listStorage(bench: Bench): readonly string[] | Promise<readonly string[]>;
  /** The name of a volume's storage, as `listStorage` has it. */
  storageOf(volume: PersistentVolume, bench: Bench): string;
  /**
   * Whether its attempts are recorded, as those of a `Recoverable` are. With false the suite leaves out what only records make possible:
   * that nothing stays behind when the claim is deleted while no process runs. Default true.
   */
  recorded?: boolean;
  /**
   * Whether it has leader election, so that a second process may run beside the first and takes over once the first one's lease has
   * expired. With true a process is also frozen for longer than its lease, and goes on after its successor has done the work. Default false.
   */
  leaderElection?: boolean;
  /**
   * What it may do: path of the YAML with its roles and bindings, such as the `rbac.yaml` of its deployment, or the objects. A story
   * fails with each right that is missing and was needed. Default: it may do everything.
   */
  rbac?: string | readonly KubeObject[];
  /** How data is written and found. Default: no data is. */
  data?: VolumeData;
  /** Of each class, besides its name and its provisioner. Default: `reclaimPolicy: 'Delete'`. */
  storageClass?: Partial<Omit<StorageClass, 'metadata' | 'provisioner'>>;
  /** What each claim requests. Default `1Mi`. */
  storage?: string;
  /** Further moments. Default: none. */
  moments?: readonly KillMoment[];
  /** How often a process is killed at the same step, where the next one comes there again. Default 2. */
  kills?: number;
  /**
   * How long a difference between storage and volumes may last, in milliseconds. After a crash nothing is deleted for 1.5 times
   * `maxCallMs`, but for no longer than a minute: allow that and half a minute more. Default 120,000.
   */
  settleMs?: number;
  /** How many stories run at once. Default: as many as there are processors, at most 4. */
  concurrency?: number;
  /** Called before each story, such as to start what the provisioner needs; what it returns is disposed after it. */
  prepare?(bench: Bench): AsyncDisposable | undefined | Promise<AsyncDisposable | undefined>;
}

/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** A cluster with the NFS provisioner, for tests about claims that become exports. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { V1PersistentVolume, V1PersistentVolumeClaimSpec } from '@kubernetes/client-node';
import type { StorageFinding } from '../../../provisioners/shared-audit/storage-audit.ts';
import { boundClaim, connectAdmin, eventsOf, assertVolumeGone, ifFound, type Admin } from '../admin.ts';
import type { ApiServer, Cluster, ClusterOptions } from '../cluster.ts';
import { startCluster } from '../start-cluster.ts';
import { eventually } from '../eventually.ts';
import type { StartedProcess } from '../started-process.ts';
import type { NfsPrograms } from './nfs-programs.ts';
import { NfsRig } from './nfs-rig.ts';

export interface NamedClaim {
  readonly name: string;
  readonly uid: string;
}

export interface AuditReport {
  findings: StorageFinding[];
  incomplete: string[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

export class NfsScene implements AsyncDisposable {
  readonly admin: Admin;
  readonly rig: NfsRig;
  readonly namespace: string;
  readonly provisioner: string;
  readonly #cluster: Cluster;
  readonly #classes: string[] = [];
  #program: StartedProcess | undefined;
  #serial = 0;

  private constructor(cluster: Cluster, rig: NfsRig) {
    const id = randomBytes(4).toString('hex');
    this.#cluster = cluster;
    this.rig = rig;
    this.admin = connectAdmin(cluster.adminKubeconfig);
    this.namespace = `nfs-${id}`;
    this.provisioner = `example.com/nfs-${id}`;
  }

  /** @param exports - as for `NfsRig.make`. */
  static async make(programs: NfsPrograms, exports?: string, cluster: ClusterOptions = {}): Promise<NfsScene> {
    if (programs.missing !== undefined) throw new Error(programs.missing);
    const scene = new NfsScene(await startCluster(cluster), await NfsRig.make(programs, exports));
    await scene.admin.core.createNamespace({ body: { metadata: { name: scene.namespace } } });
    return scene;
  }

  get program(): StartedProcess {
    if (this.#program === undefined) throw new Error('the provisioner was not started');
    return this.#program;
  }

  /** Of several that were started, the one that waits count on. */
  set program(program: StartedProcess) {
    this.#program = program;
  }

  /** Of a cluster of the test's own. */
  get apiServer(): ApiServer {
    const { apiServer } = this.#cluster;
    if (apiServer === undefined) throw new Error('not asked for with `ownCluster`');
    return apiServer;
  }

  /** With all rights. */
  get kubeconfig(): string {
    return this.#cluster.adminKubeconfig;
  }

  /** Of an account with the rights that the manifests give it. */
  accountKubeconfig(manifests: string, account: string): Promise<string> {
    return this.#cluster.accountKubeconfig(manifests, { namespace: this.namespace, name: account });
  }

  /** Starts the provisioner with further flags. */
  async start(
    args: readonly string[] = [],
    options: { path?: string; kubeconfig?: string; env?: Record<string, string> } = {},
  ): Promise<void> {
    const { kubeconfig } = this;
    const given = { kubeconfig, args: ['-provisioner', this.provisioner, ...args], ...options };
    this.#program = await this.rig.start(given);
  }

  /** What `audit` says, with the flags of the provisioner and two looks directly after each other. */
  async audit(...args: readonly string[]): Promise<AuditReport> {
    const given = ['-provisioner', this.provisioner, 'audit', '--second-look=1ms', '--output=json', ...args];
    return JSON.parse(await this.rig.run({ kubeconfig: this.kubeconfig, args: given })) as AuditReport;
  }

  async createClass(parameters: Record<string, string> = {}, more: object = {}): Promise<string> {
    const name = `${this.namespace}-${++this.#serial}`;
    this.#classes.push(name);
    const { provisioner } = this;
    await this.admin.storage.createStorageClass({ body: { metadata: { name }, provisioner, parameters, ...more } });
    return name;
  }

  async createClaim(
    storageClassName: string,
    { storage = '1Mi', ...more }: { storage?: string } & Partial<V1PersistentVolumeClaimSpec> = {},
  ): Promise<NamedClaim> {
    const name = `claim-${++this.#serial}`;
    const { metadata } = await this.admin.core.createNamespacedPersistentVolumeClaim({
      namespace: this.namespace,
      body: {
        metadata: { name },
        spec: { storageClassName, accessModes: ['ReadWriteMany'], resources: { requests: { storage } }, ...more },
      },
    });
    return { name, uid: metadata?.uid ?? '' };
  }

  async deleteClaim({ name }: NamedClaim): Promise<void> {
    await this.admin.core.deleteNamespacedPersistentVolumeClaim({ name, namespace: this.namespace });
  }

  /** Repeats a check until it holds, as long as the provisioner runs. */
  waitFor<T>(check: () => T | Promise<T>, options: { withinMs?: number } = {}): Promise<T> {
    const hopeless = (): string | undefined => (this.program.running() ? undefined : 'the provisioner has ended');
    return eventually(check, { hopeless, ...options });
  }

  /** The volume of a claim, once it is bound. */
  async bound({ name }: NamedClaim): Promise<V1PersistentVolume> {
    return (await this.waitFor(() => boundClaim(this.admin, this.namespace, name))).volume;
  }

  /** Resolves once the PersistentVolume is gone. */
  gone(volume: { metadata?: { name?: string } }): Promise<void> {
    return this.waitFor(() => assertVolumeGone(this.admin, volume.metadata?.name ?? ''));
  }

  /** Resolves once an event about the object has a matching message. */
  event({ uid }: { uid: string }, message: RegExp, namespace = this.namespace): Promise<string> {
    return this.waitFor(async () => {
      const events = await eventsOf(this.admin, namespace, uid);
      const found = events.find((event) => message.test(event.message ?? ''));
      if (found?.message === undefined) throw new Error(`events: ${events.map((each) => each.message).join('; ')}`);
      return found.message;
    });
  }

  /** Where the volume of a claim lies, or will. */
  directory({ uid }: NamedClaim): string {
    return join(this.rig.exports, `pvc-${uid}`);
  }

  config(): Promise<string> {
    return readFile(join(this.rig.exports, 'vfs.conf'), 'utf8');
  }

  /** Of the ganesha that runs now, or starts: its file is empty, or not there, before it has written it. */
  async ganeshaPid(): Promise<number> {
    return await eventually(async () => {
      const text = await readFile(join(this.rig.folder, 'ganesha.pid'), 'utf8');
      const [, pid] = /^\s*(\d+)\n/.exec(text) ?? []; // ganesha writes over an id that may have been longer
      assert.ok(pid);
      return Number(pid);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#classes) await ifFound(this.admin.storage.deleteStorageClass({ name }));
    await ifFound(this.admin.core.deleteNamespace({ name: this.namespace }));
    await this.rig[Symbol.asyncDispose]();
    await this.#cluster.stop();
  }
}

/** Whether a file or directory is there. */
export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

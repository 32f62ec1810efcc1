/** The provisioner of nfs-subdir on a folder with bait beside it; classes are read live from the sandbox's API. */
import assert from 'node:assert/strict';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Neighbours } from '../../../provisioners/nfs-subdir/neighbours.ts';
import {
  type NfsSubdirOptions,
  NfsSubdirProvisioner,
} from '../../../provisioners/nfs-subdir/nfs-subdir-provisioner.ts';
import { readSettings, type Settings } from '../../../provisioners/nfs-subdir/settings.ts';
import { ownVolumes } from '../../../provisioners/nfs-subdir/own-volumes.ts';
import { ShareGuard, type ShareGuardOptions } from '../../../provisioners/nfs-subdir/share-guard.ts';
import { identityFile } from '../../../provisioners/nfs-subdir/share-identity.ts';
import { PatientCalls } from '../../../provisioners/nfs-subdir/patient-calls.ts';
import { Share } from '../../../provisioners/nfs-subdir/share.ts';
import type { PersistentVolume, PersistentVolumeClaim, ProvisionOptions, StorageClass } from '../../../src/index.ts';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { Attempts } from '../../support/attempts.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';

const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
export const provisionerName = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const server = 'srv';
/** Of the share, as an earlier provisioner gave it. */
export const shareIdentity = '6b0f8a52-7a0c-4a36-9a53-0d1c6c1f3a57';

/** What a test says of a claim. */
export interface ClaimSketch {
  namespace?: string;
  name?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  spec?: Partial<PersistentVolumeClaim['spec']>;
}

export class SubdirRig implements AsyncDisposable {
  readonly folder: string;
  /** Where the export is mounted. */
  readonly mount: string;
  readonly api: SandboxApi;
  readonly provisioner: NfsSubdirProvisioner;
  readonly log: LogLine[] = [];
  /** The cache of volumes. */
  readonly volumes = new Map<string, PersistentVolume>();
  readonly share: Share;
  /** In the place of the index of the caches. */
  readonly volumesWith: NfsSubdirOptions['volumesWith'];
  /** Volumes that were woken. */
  readonly woken: string[] = [];
  readonly #sharePath: string;
  #serial = 0;

  private constructor(folder: string, api: SandboxApi, { sharePath, mount }: { sharePath: string; mount: string }) {
    this.folder = folder;
    this.mount = mount;
    this.api = api;
    mkdirSync(this.mount, { recursive: true });
    mkdirSync(path.join(folder, 'mount'), { recursive: true });
    mkdirSync(this.bait);
    writeFileSync(path.join(this.bait, 'kept'), 'outside');
    writeFileSync(path.join(this.mount, identityFile), `${shareIdentity}\n`);
    const environment = { NFS_SERVER: server, NFS_PATH: sharePath, PROVISIONER_NAME: provisionerName };
    const settings = readSettings({ ...environment, MOUNT_POINT: this.mount });
    this.#sharePath = settings.sharePath;
    const { volumes } = this;
    this.share = new Share(this.mount, this.guard());
    this.volumesWith = (keys) => {
      const found = [...volumes.values()].filter((each) =>
        this.provisioner.storageKeys(each).some((key) => keys.includes(key)),
      );
      return Promise.resolve(found);
    };
    this.provisioner = this.#provisioner(settings);
  }

  /** A provisioner of another name on the same share and cluster. */
  another(name: string): NfsSubdirProvisioner {
    const environment = { NFS_SERVER: server, NFS_PATH: this.#sharePath, PROVISIONER_NAME: name };
    return this.#provisioner(readSettings({ ...environment, MOUNT_POINT: this.mount }));
  }

  #provisioner(settings: Settings): NfsSubdirProvisioner {
    const { volumes, share, api, volumesWith } = this;
    const neighbours = new Neighbours({
      volumes: { get: (name) => volumes.get(name), list: () => volumes.values(), byIndex: () => [] },
      provisionerName: settings.provisionerName,
      sharePath: settings.sharePath,
      clock: systemClock,
      onFreed: (name) => this.woken.push(name),
    });
    const calls = new PatientCalls({ clock: systemClock, mountPoint: this.mount });
    const logger = recordedLogger(this.log);
    const { client } = api;
    const parts = { settings, share, calls, neighbours, client, clock: systemClock, volumesWith, logger };
    return new NfsSubdirProvisioner(parts);
  }

  /** @param options.mount - a folder of the caller's in the place of one beside the bait. */
  static async start(options: { sharePath?: string; mount?: string } = {}): Promise<SubdirRig> {
    const folder = await mkdtemp(path.join(tmpdir(), 'nfs-subdir-'));
    const { sharePath = '/exp', mount = path.join(folder, 'mount') } = options;
    return new SubdirRig(folder, await SandboxApi.start(), { sharePath, mount });
  }

  /** Checks what is mounted, as another process of the provisioner does that has seen nothing yet. */
  guard(notes?: ShareGuardOptions['notes']): ShareGuard {
    const own = { volumes: { list: () => this.volumes.values() }, provisionerName, sharePath: this.#sharePath };
    return new ShareGuard({
      mountPoint: this.mount,
      notes,
      ownVolumes: () => ownVolumes(own),
      synced: Promise.resolve(),
      clock: systemClock,
      logger: recordedLogger([]),
    });
  }

  /** A folder beside the mounted one, in which nothing may change. */
  get bait(): string {
    return path.join(this.folder, 'bait');
  }

  /** Makes a class, in the place of one of the same name. */
  storageClass(parameters?: Record<string, string>, more: Partial<StorageClass> = {}): StorageClass {
    const name = more.metadata?.name ?? `class-${++this.#serial}`;
    if (this.api.own.get(classesRef, { name }) !== undefined) this.api.own.delete(classesRef, { name });
    const made = { metadata: { name }, provisioner: provisionerName, ...(parameters && { parameters }), ...more };
    this.api.own.create(classesRef, structuredClone(made) as SandboxObject);
    return made;
  }

  deleteClass(name: string): void {
    this.api.own.delete(classesRef, { name });
  }

  claim({ namespace = 'ns', name = 'c', labels, annotations, spec = {} }: ClaimSketch = {}): PersistentVolumeClaim {
    return {
      metadata: {
        namespace,
        name,
        uid: `uid-${++this.#serial}`,
        ...(labels && { labels }),
        ...(annotations && { annotations }),
      },
      spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } }, ...spec },
    };
  }

  options(storageClass: StorageClass, claim: PersistentVolumeClaim, volumeName = 'pvc-1') {
    return { storageClass, claim, volumeName, selectedNodeName: '' };
  }

  /** A first attempt to make a volume; nothing is saved. */
  make(options: ProvisionOptions): Promise<PersistentVolume> {
    return new Attempts(this.provisioner).make(options, { signal: new AbortController().signal });
  }

  /** Provisions a volume and puts it into the cache, as the controller saves it. */
  async provision(
    storageClass: StorageClass,
    sketch: ClaimSketch = {},
    volumeName = 'pvc-1',
  ): Promise<PersistentVolume> {
    const made = await this.make(this.options(storageClass, this.claim(sketch), volumeName));
    return this.save(made, storageClass.metadata.name);
  }

  save(made: PersistentVolume, className: string): PersistentVolume {
    const volume = {
      ...made,
      metadata: { ...made.metadata, annotations: { 'pv.kubernetes.io/provisioned-by': provisionerName } },
      spec: { ...made.spec, storageClassName: className },
    };
    this.volumes.set(volume.metadata.name, volume);
    return volume;
  }

  /** A volume of this path as the original would have made it. */
  volume(nfsPath: string, className: string, name = 'pvc-1'): PersistentVolume {
    return this.save({ metadata: { name }, spec: { nfs: { server, path: nfsPath } } }, className);
  }

  /** Deletes a volume as the controller does: its object goes once the storage is settled. */
  async delete(volume: PersistentVolume, signal = new AbortController().signal): Promise<void> {
    await this.provisioner.delete(volume, { signal });
    this.volumes.delete(volume.metadata.name);
  }

  path(...names: string[]): string {
    return path.join(this.mount, ...names);
  }

  remote(...names: string[]): string {
    return path.posix.join(this.#sharePath, ...names);
  }

  /** Writes a file into a volume. */
  write(file: string, text = 'data'): void {
    mkdirSync(path.dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), text);
  }

  read(file: string): string {
    return readFileSync(this.path(file), 'utf8');
  }

  exists(...names: string[]): boolean {
    return existsSync(this.path(...names));
  }

  /** What is in the root of the export besides the identity of the share. */
  entries(): string[] {
    return readdirSync(this.mount)
      .filter((name) => name !== identityFile)
      .sort();
  }

  mode(...names: string[]): number {
    return statSync(this.path(...names)).mode & 0o7777;
  }

  /** @throws when anything outside the mounted folder was touched. */
  checkBait(): void {
    assert.deepEqual(readdirSync(this.folder).sort(), ['bait', 'mount']);
    assert.deepEqual(readdirSync(this.bait), ['kept']);
    assert.equal(readFileSync(path.join(this.bait, 'kept'), 'utf8'), 'outside');
    assert.equal(lstatSync(this.bait).mode & 0o777, 0o755);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
    this.checkBait();
    await rm(this.folder, { recursive: true, force: true });
  }
}

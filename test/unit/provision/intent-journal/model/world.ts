/** Everything outside the processes, and the rules that must hold whatever happens. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KubeObject } from '../../../../../src/kube/kube-object.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  storageProvisionerKey,
} from '../../../../../src/provision/objects.ts';
import type { LogLine } from '../../../../support/fakes/recorded-logger.ts';
import { Api, type Backup } from './api.ts';
import { Backend, type BackendVolume } from './backend.ts';
import { Network } from './network.ts';
import { type BrokenGuards, SimProcess } from './sim-process.ts';
import { driverName, type Looks } from './sim-provisioner.ts';
import { StorageLedger } from './storage-ledger.ts';

export interface WorldOptions {
  /** The first pause before a volume is saved again, in milliseconds. */
  savePauseMs: number;
  handlesFromNames: boolean;
  /** Each volume has a source, which is held until its storage is known. */
  hasSource: boolean;
  /** One process at a time, by leader election; without, two may overlap. */
  election: boolean;
  /** Every other process has another prefix for the names of volumes. */
  prefixChanges: boolean;
  broken?: BrokenGuards;
}

/** How long a call to the backend may take, in milliseconds. */
const maxCallMs = 20_000;
/** A backend ends its work at most this much later than its caller has given up, as a factor. */
const lateness = 1.4;
/** Without a process for longer than this, the history of the volumes may be gone, in milliseconds. */
const shortAbsenceMs = 60_000;
/** A standby leads this long after the last renewal, in milliseconds. */
const takeOverMs = 16_000;
export const claimKey = (slot: number): string => `ns/claim-${slot}`;

export class RuleBrokenError extends Error {
  override readonly name = 'RuleBrokenError';
}

export class World {
  readonly network = new Network();
  readonly api: Api;
  readonly backend: Backend;
  readonly ledger: StorageLedger;
  processes: SimProcess[] = [];
  /** What happened, for the report of a failure. */
  readonly story: string[] = [];
  readonly #options: WorldOptions;
  #tick = 0;
  #args = 1;
  #started = 0;
  readonly lines: LogLine[] = [];
  /** Volumes that an administrator made for existing storage, with the moment. */
  readonly #byHand = new Map<string, number>();
  /** By the UID of the claim: when it came back to us. */
  readonly #wantedSince = new Map<string, number>();
  #broken: string | undefined;
  #backup: Backup | undefined;
  #absentMs = 0;
  /** Something happened that may leave what cannot be decided. */
  mayBeReported = false;
  /** Another provisioner, which keeps no records, has served claims. */
  anotherWorked = false;
  /** Two processes have worked at the same time, without leader election. */
  hasOverlapped = false;
  /** Etcd went back: volumes may be there whose storage was deleted. */
  wasRestored = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    const nowMs = (): number => this.network.nowMs;
    const { handlesFromNames } = options;
    this.backend = new Backend({
      nowMs,
      maxWorkMs: lateness * maxCallMs,
      handlesFromNames,
      onOtherArgs: (...about) => this.#onOtherArgs(...about),
    });
    this.ledger = new StorageLedger(this.backend);
    this.api = new Api({ onStored: (plural, object) => this.ledger.onStored(plural, object) });
    this.api.put('storageclasses', this.#class('delete'));
    this.api.put('storageclasses', this.#class('retain'));
  }

  get alive(): SimProcess[] {
    return this.processes.filter(({ alive }) => alive);
  }

  /** Whether another process may start. */
  get canStart(): boolean {
    if (!this.#options.election) return this.alive.length < 2;
    return this.alive.length < 2 && this.alive.every(({ paused, pausedMs }) => paused && pausedMs >= takeOverMs);
  }

  get claims(): PersistentVolumeClaim[] {
    return this.api.all('persistentvolumeclaims');
  }

  get volumes(): PersistentVolume[] {
    return this.api.all('persistentvolumes');
  }

  claim(slot: number): PersistentVolumeClaim | undefined {
    return this.api.find('persistentvolumeclaims', claimKey(slot));
  }

  note(text: string): void {
    this.story.push(`${String(this.network.nowMs).padStart(7)} ${text}`);
  }

  startProcess(): void {
    if (!this.#options.election && this.alive.length > 0) this.hasOverlapped = true;
    const { savePauseMs, election, prefixChanges, hasSource, broken = {} } = this.#options;
    if (this.network.isStalled) this.network.goOn(); // a process begins nothing before its driver responds
    const number = ++this.#started;
    if (election) for (const process of this.alive) process.overtaken = true;
    const { api, backend, network } = this;
    this.processes = this.alive;
    this.processes.push(
      new SimProcess({
        api,
        backend,
        network,
        maxCallMs,
        savePauseMs,
        hasSource,
        election,
        broken,
        lines: this.lines,
        writer: `writer-${number}`,
        prefix: prefixChanges && number % 2 === 0 ? 'vol' : 'pvc',
        onDelete: (...args) => this.#onDelete(...args),
        onNeedlessRequest: (name) => this.#onNeedlessRequest(name),
        tick: () => ++this.#tick,
      }),
    );
  }

  createClaim(slot: number, className: string): void {
    const repeatsUids = this.#options.broken?.repeatsUids === true;
    this.api.put<PersistentVolumeClaim>('persistentvolumeclaims', {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace: 'ns',
        name: `claim-${slot}`,
        ...(repeatsUids && { uid: `uid-of-claim-${slot}` }),
        annotations: { [storageProvisionerKey]: driverName },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: className,
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Pending' },
    });
  }

  /** The classes are made again with other parameters. */
  changeClasses(): void {
    this.#args++;
    for (const name of ['delete', 'retain']) {
      this.api.remove('storageclasses', name);
      this.api.put('storageclasses', this.#class(name));
    }
  }

  /** An administrator makes a volume for existing storage. */
  adopt(handle: string): void {
    const name = `by-hand-${this.#byHand.size}`;
    this.#byHand.set(name, ++this.#tick);
    this.api.put<PersistentVolume>('persistentvolumes', {
      metadata: { name },
      spec: { csi: { driver: driverName, volumeHandle: handle }, persistentVolumeReclaimPolicy: 'Retain' },
      status: { phase: 'Available' },
    });
  }

  /** The API server is restarted. */
  restartApi(): void {
    this.mayBeReported = true; // its history is gone
    this.api.restart();
  }

  backUpEtcd(): void {
    this.#backup = this.api.backup();
  }

  get isBackedUp(): boolean {
    return this.#backup !== undefined;
  }

  /** Etcd goes back to its backup. What came to be since then is in use perhaps, and nobody knows it. */
  restoreEtcd(): void {
    if (this.#backup === undefined) return;
    this.mayBeReported = true;
    this.wasRestored = true;
    this.ledger.forgetUntil(this.api.lastUid);
    this.api.restore(this.#backup);
  }

  /** What Kubernetes' own controller does with claims and volumes. */
  bind(): void {
    for (const { metadata, spec, status } of this.volumes) {
      const { claimRef } = spec;
      if (claimRef === undefined) continue;
      const key = `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`;
      const claim = this.api.find<PersistentVolumeClaim>('persistentvolumeclaims', key);
      const bound = claim?.spec.volumeName ?? '';
      const isFor = claim?.metadata.uid === claimRef.uid && (bound === '' || bound === metadata.name);
      const phase = isFor ? 'Bound' : 'Released';
      if (isFor && claim?.status?.phase !== 'Bound') {
        this.api.edit<PersistentVolumeClaim>('persistentvolumeclaims', key, (it) => {
          it.spec.volumeName = metadata.name;
          it.status = { phase: 'Bound' };
        });
      }
      if (status?.phase === phase) continue;
      this.api.edit<PersistentVolume>('persistentvolumes', metadata.name, (it) => {
        it.status = { phase };
      });
    }
  }

  /** Lets what was set off come to rest. */
  async settle(): Promise<void> {
    await nextTurn();
    await nextTurn();
  }

  /** Executes and answers every call. */
  async pump(): Promise<void> {
    await this.settle();
    for (let steps = 0; this.network.length > 0; steps++) {
      if (steps > 2000) throw new RuleBrokenError(`requests without end: ${this.network.toString()}`);
      await this.step();
    }
  }

  async step(pick = 0): Promise<void> {
    this.#tick++;
    this.network.step(pick);
    await this.settle();
  }

  /** Executes and answers calls until one of this kind is next. */
  async until(what: string, state: 'sent' | 'executed'): Promise<void> {
    await this.settle();
    for (let steps = 0; steps < 200 && this.network.length > 0 && !this.network.isAt(what, state); steps++)
      await this.step();
  }

  /** @param options.busy - calls are executed and answered meanwhile; otherwise they wait, and may run out of time. */
  async advance(ms: number, { busy, chunkMs = 1000 }: { busy: boolean; chunkMs?: number }): Promise<void> {
    const endMs = this.network.nowMs + ms;
    while (this.network.nowMs < endMs) {
      const passed = Math.min(chunkMs, endMs - this.network.nowMs);
      this.network.nowMs += passed;
      for (const process of this.alive) await process.advance(passed);
      this.network.expire();
      this.backend.finishWork({ all: false });
      this.api.tick(this.network.nowMs);
      this.#absentMs = this.alive.every(({ paused }) => paused) ? this.#absentMs + passed : 0;
      if (this.#absentMs > shortAbsenceMs) this.mayBeReported = true;
      if (busy) await this.pump();
      else await this.settle();
    }
  }

  /** The faults are over and enough time passes; then nothing may be left undone. */
  async comeToRest(): Promise<void> {
    if (this.network.isStalled) this.network.goOn();
    this.backend.noMoreFaults();
    for (const process of this.alive.filter(({ paused }) => paused)) process.alive = false;
    for (const { transport } of this.alive) transport.releaseWatches();
    for (const process of this.alive.slice(1)) process.alive = false;
    for (const process of this.alive.filter(({ stopping }) => stopping)) process.alive = false;
    if (this.alive.length === 0) this.startProcess();
    for (let minutes = 0; minutes < 60; minutes++) {
      if (this.alive.length === 0) this.startProcess(); // one that finds the journal written by others ends
      await this.advance(60_000, { busy: true, chunkMs: 10_000 });
      this.bind();
    }
    await this.pump();
  }

  /** @throws {RuleBrokenError} when something was deleted that may be used. */
  check(): void {
    if (this.#broken !== undefined) throw this.#failure(this.#broken);
  }

  /** @throws {RuleBrokenError} when something is lost or missing. */
  checkAtRest(): void {
    const unexpected = this.lines.find(({ message }) => message.startsWith('An event that the state'));
    if (unexpected !== undefined) throw this.#failure(`an unexpected event: ${JSON.stringify(unexpected.fields)}`);
    const [process] = this.alive;
    if (process === undefined) throw this.#failure('no process is left');
    const reported = this.#reportedNames();
    const open = new Set(process.openNames());
    for (const name of open) {
      if (!reported.has(name)) throw this.#failure(`the record of ${name} stays open`);
      if (!this.mayBeReported) throw this.#failure(`${name} is reported without need`);
    }
    const handles = new Set(this.volumes.map(({ spec }) => spec.csi?.volumeHandle));
    for (const storage of this.backend.volumes.values()) {
      const { handle, name } = storage;
      if (!handles.has(handle) && !open.has(name) && !this.ledger.isExcused(storage))
        throw this.#failure(`${handle} of ${name} is left behind`);
    }
    // few versions back may be caught up before anybody notices: then a claim that came back stays unknown
    if (!this.wasRestored) for (const claim of this.claims) this.#checkClaim(claim, open);
  }

  /** Names of the volumes that were reported as possibly left behind. */
  #reportedNames(): Set<string> {
    const reports = this.lines.filter(({ message }) => /^A volume may be (left|kept)/.test(message));
    return new Set(reports.map(({ fields }) => String((fields as { volume?: string }).volume)));
  }

  #checkClaim(claim: PersistentVolumeClaim, open: Set<string>): void {
    const {
      metadata: { name, uid = '' },
      spec,
    } = claim;
    const { volumeName = '' } = spec;
    if (!isOurs(claim) || [...open].some((each) => isFor(each, uid))) return;
    if (volumeName !== '' && !isFor(volumeName, uid)) return;
    const mine = this.volumes.filter((volume) => volume.spec.claimRef?.uid === uid);
    const { election, prefixChanges } = this.#options;
    // two that overlap and name volumes differently may both serve a claim: the binder chooses, and the other volume is reclaimed
    const isDoubled = mine.length > 1 && !(prefixChanges && (!election || this.anotherWorked));
    if (mine.length === 0 || isDoubled) throw this.#failure(`${name} with UID ${uid} has ${mine.length} volumes`);
    const handle = mine[0]?.spec.csi?.volumeHandle ?? '';
    if (!this.backend.volumes.has(handle)) throw this.#failure(`the storage ${handle} of ${name} is gone`);
  }

  #onDelete(handle: string, purpose: 'reclaim' | 'revoke', looks: Looks): void {
    const storage = this.backend.volumes.get(handle);
    if (storage === undefined) return;
    this.#checkWish(handle, purpose, looks.claim);
    if (this.ledger.isKept(storage) && !this.wasRestored)
      this.#broken ??= `${purpose}: ${handle} is deleted though it is to be kept`;
    if (purpose === 'revoke' && this.ledger.wasHeld(storage))
      this.#broken ??= `revoke: ${handle} is deleted though a volume has had it`;
    for (const volume of this.volumes) {
      if (volume.spec.csi?.volumeHandle !== handle) continue;
      const { name } = volume.metadata;
      if (
        purpose === 'revoke'
          ? this.#isUsable(volume, looks.volumes[storage.name] ?? 0)
          : volume.status?.phase === 'Bound'
      )
        this.#broken ??= `${purpose}: ${handle} is deleted though ${name} refers to it`;
    }
  }

  /** A request that may have been sent is repeated unchanged, until its outcome is known. */
  #onOtherArgs(name: string, existing: BackendVolume | undefined): void {
    if (this.anotherWorked || this.wasRestored) return; // nobody knows of what was requested then
    // two live processes: one plans anew for a node that was selected meanwhile, while the other adopts its first plan
    if (this.hasOverlapped) return;
    if (existing !== undefined && this.ledger.wasHeld(existing)) return; // the claim is served, which not every process knows yet
    this.#broken ??= `${name} is requested from other arguments than before`;
  }

  /** What the only request for a volume has named is not looked for by another one. */
  #onNeedlessRequest(name: string): void {
    if (this.#started > 1 || this.wasRestored) return; // what another process has requested is not known
    this.#broken ??= `${name} is requested again though its storage is known`;
  }

  /** A fit volume is not deleted under a claim that wanted it when the process looked. */
  #checkWish(handle: string, purpose: 'reclaim' | 'revoke', lookedAt: number): void {
    const volume = this.backend.volumes.get(handle);
    if (this.#started > 1 || purpose === 'reclaim' || volume?.unfit !== false) return; // an earlier process may have begun
    const claim = this.claims.find(({ metadata: { uid = '' } }) => isFor(volume.name, uid));
    if (claim === undefined || (claim.spec.volumeName ?? '') !== '' || !isOurs(claim)) return;
    if ((this.#wantedSince.get(claim.metadata.uid ?? '') ?? 0) < lookedAt)
      this.#broken ??= `revoke: ${handle} is deleted though ${claim.metadata.name} wants it`;
  }

  /** The claim is ours again. */
  handBack(slot: number): void {
    this.api.edit<PersistentVolumeClaim>('persistentvolumeclaims', claimKey(slot), ({ metadata }) => {
      metadata.annotations = { [storageProvisionerKey]: driverName };
      this.#wantedSince.set(metadata.uid ?? '', ++this.#tick);
    });
  }

  /** Whether a volume counts as one that may be used, for a process that looked at that moment. */
  #isUsable({ metadata: { name }, spec }: PersistentVolume, lookedAt: number): boolean {
    const madeAt = this.#byHand.get(name);
    if (madeAt !== undefined) return madeAt < lookedAt; // nobody can see what is made after the look
    if (spec.persistentVolumeReclaimPolicy === 'Retain') return true;
    const claim = this.claims.find(({ metadata }) => metadata.uid === spec.claimRef?.uid);
    return claim !== undefined && ['', name].includes(claim.spec.volumeName ?? '');
  }

  #class(name: string): StorageClass {
    return {
      metadata: { name },
      provisioner: driverName,
      parameters: { args: String(this.#args) },
      reclaimPolicy: name === 'retain' ? 'Retain' : 'Delete',
      volumeBindingMode: 'Immediate',
    };
  }

  #failure(rule: string): RuleBrokenError {
    return new RuleBrokenError([rule, ...this.story, this.network.toString()].join('\n'));
  }
}

/** Whether a volume's name was made for the claim, with whatever prefix. */
function isFor(name: string, uid: string): boolean {
  return name.endsWith(`-${uid}`);
}

/** Whether the claim asks for a volume of ours. */
export function isOurs({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[storageProvisionerKey] === driverName;
}

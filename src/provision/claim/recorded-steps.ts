/**
 * The steps of a `Recoverable` provisioner: plan, record and create. The plan is recorded before the backend is called, and fulfilled
 * as often as needed.
 */
import type { Environment } from '../environment.ts';
import { whenPermitted, withRecheck } from '../../base/permit.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { orderOf } from '../../kube/client/resource-version.ts';
import { type Attempt, type AttemptSteps, Stopped } from './attempt-steps.ts';
import { nodeName } from '../cache/cached-claim.ts';
import { claimReference, claimUid, claimWish, selectedNode } from '../claim-fields.ts';
import type { ClaimWaits } from '../waits.ts';
import { completeVolume, volumeTemplate } from '../volume-template.ts';
import type { DeletionGuard } from '../revoke/deletion-guard.ts';
import { waitingReason } from '../event-reasons.ts';
import { uidIndex } from '../cache/informers.ts';
import type { IntentRecord, VolumeTemplate } from '../intent-journal/intent-record.ts';
import type { Intent } from '../intents/intent.ts';
import { isBeingDeleted, isBusy, mayExist } from '../intents/intent-state.ts';
import type { Intents } from '../intents/intents.ts';
import { checkPlan, Planned, type Recoverable } from '../recoverable.ts';
import { noteFailure, reportStuck } from './attempt-failure.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../objects.ts';
import type { ProvisionOptions } from '../provisioner.ts';
import type { RecentlySaved } from '../volume/save-volume.ts';
import type { RevokeQueue } from '../revoke/revoke-queue.ts';
import { closeIfServed } from './served-intent.ts';
import { storedVolume } from '../volume/stored-volume.ts';
import type { VolumeStore } from '../volume/volume-store.ts';
import { waitingText } from '../last-errors.ts';

/** How long the journal may keep a claim waiting before an event says so, in milliseconds. */
const journalPatienceMs = 30_000;

const claimGone = new Stopped('claim-gone', 'the claim was deleted meanwhile');

export interface RecordedStepsOptions {
  /** In the sidecar the `CsiProvisioner`. */
  provisioner: Recoverable;
  intents: Intents;
  guard: DeletionGuard;
  revokeQueue: Pick<RevokeQueue, 'add' | 'closeNowOrAfterLateCalls'>;
  store: VolumeStore;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Lister<PersistentVolume> & Pick<Informer<PersistentVolume>, 'version'>;
  classes: Lister<StorageClass>;
  /** UIDs of claims whose volume was saved, which the cache of claims may not show yet. */
  recentlyServedClaims: Pick<RecentlySaved, 'has'>;
  isKnownProvisioner: (name: string) => boolean;
  addFinalizer: boolean;
  waits: Pick<ClaimWaits, 'add' | 'delete'>;
}

export class RecordedSteps implements AttemptSteps {
  readonly #options: Environment & RecordedStepsOptions;

  constructor(environment: Environment, options: RecordedStepsOptions) {
    this.#options = { ...environment, ...options };
  }

  hasRecord(uid: string): boolean {
    return this.#options.intents.get(uid) !== undefined;
  }

  /** As `hasRecord`: while the volume may be in progress, it has a record. */
  isInProgress(uid: string): boolean {
    return this.hasRecord(uid);
  }

  /** None: what was begun for a claim that is gone is deleted. */
  keptClaim(): undefined {
    return undefined;
  }

  /** The claim as it is now decides what becomes of its open intent; its class and its source are not read. */
  async resume(
    uid: string,
    claim: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<Attempt | 'nothing-to-do'> {
    const { provisioner, intents, revokeQueue, store, isKnownProvisioner } = this.#options;
    const intent = intents.get(uid);
    if (intent === undefined) return 'nothing-to-do';
    const { record } = intent;
    if (isBusy(intent.state)) return 'nothing-to-do';
    const wish = await claimWish(record, claim, {
      isKnownProvisioner,
      qualifies: (it) => provisioner.shouldProvision?.(it, { signal }) ?? true,
    });
    if (wish === 'has-it') {
      await this.#noteOtherStorage(intent, signal);
      this.#closeServed(intent);
      return 'nothing-to-do';
    }
    if (isBusy(intent.state)) return 'nothing-to-do'; // the revoker has begun meanwhile
    if (claim === undefined || wish !== 'wanted' || isBeingDeleted(intent.state)) {
      revokeQueue.add(intent);
      return 'nothing-to-do';
    }
    // from now on the revoker does nothing; what was recorded of a wait does not hold any more
    await intents.onWritten(intent, { type: 'wanted' }, signal);
    if (store.isUnsaved(record.volume.name)) return 'nothing-to-do';
    try {
      this.#checkName(claimUid(claim), record.volume.name);
      if (await closeIfServed(this.#options, intent, claim, signal)) return 'nothing-to-do';
      await intents.takeOver(intent, signal);
    } catch (error) {
      throw this.#reportWaiting(claim, error);
    }
    return { options: this.#optionsOf(intent, claim), intent };
  }

  /**
   * A record that is begun now has no version. After a restore of etcd no history says what became of that volume: the cache still shows
   * it, a server that has gone back never had it, and the proof, which begins with the record, would find nothing.
   */
  volumeIsGone(uid: string): void {
    this.#options.intents.hadVolume(uid);
  }

  /**
   * The checks before a new volume is begun, besides those of `ClaimAttempt`.
   *
   * @returns that the claim has its volume or is gone, which the cache does not show yet.
   * @throws {NameInUseError} while another claim's volume of the name is in progress, {DrainingError} while none may be begun.
   */
  async admit({ claim, volumeName }: ProvisionOptions, signal: AbortSignal): Promise<Stopped | undefined> {
    const { intents } = this.#options;
    try {
      intents.checkDrain();
      this.#checkName(claimUid(claim), volumeName);
    } catch (error) {
      throw this.#reportWaiting(claim, error);
    }
    return this.#alreadyServed(claim, volumeName, signal);
  }

  /** Reads live whether a claim that was served lately, by any process, still wants a volume. @returns why not; undefined: it does. */
  async #alreadyServed(
    claim: PersistentVolumeClaim,
    volumeName: string,
    signal: AbortSignal,
  ): Promise<Stopped | undefined> {
    const { guard, recentlyServedClaims, client, waits } = this.#options;
    if (!recentlyServedClaims.has(claimUid(claim))) return undefined;
    const wish = await guard.wish({ claim: namesOf(claim) }, signal);
    if (wish !== 'wanted') return new Stopped('served', 'the claim has its volume, or is gone');
    // the volume of another process, which the claim does not name yet, and neither cache may show
    waits.add(claimUid(claim), `gone/${volumeName}`);
    if ((await storedVolume(client, volumeName, signal)) === undefined) return undefined;
    return new Stopped('volume-exists', `volume ${volumeName} exists already`);
  }

  async provision({ options, intent: recorded }: Attempt, signal: AbortSignal): Promise<PersistentVolume | Stopped> {
    if (recorded !== undefined) return this.#create(recorded, signal);
    const { provisioner, intents, volumes, clock } = this.#options;
    const { claim } = options;
    // before anything is planned, so that every later change of volumes is seen
    const version = intents.mayHaveHadVolume(claimUid(claim)) ? undefined : volumes.version;
    const made = await provisioner.plan(options, { signal });
    const planned = made instanceof Planned ? made : undefined;
    const plan = made instanceof Planned ? made.plan : made;
    checkPlan(plan);
    const record: IntentRecord = {
      claim: namesOf(claim),
      volume: volumeTemplate(options),
      plan,
      phase: 'create',
      ...(version !== undefined && !Number.isNaN(orderOf(version)) && { since: version }),
      createdAt: new Date(clock.wallMs()).toISOString(),
    };
    const intent = await this.#whileReportingWait(claim, () =>
      intents.openAndRecord(record, { plannedNode: nodeName(claim), planned, signal }),
    );
    // the claim may have changed while its record was written; such a change has queued it
    const cached = this.#cached(intent);
    if (cached === undefined || nodeName(cached) !== intent.plannedNode) {
      intents.close(intent);
      return cached === undefined ? claimGone : new Stopped('node-changed', 'another node was selected meanwhile');
    }
    // a record of another process may have ended after `admit` had looked: that process has served the claim, or given it up
    const served = await this.#alreadyServed(claim, options.volumeName, signal).catch((error: unknown) => {
      intents.close(intent);
      throw error;
    });
    if (served !== undefined) {
      intents.close(intent);
      return served;
    }
    return this.#create(intent, signal);
  }

  /** Opens an intent; if that has to wait, an event on the claim says for what. @throws as `Intents.openAndRecord`. */
  async #whileReportingWait(claim: PersistentVolumeClaim, open: () => Promise<Intent>): Promise<Intent> {
    const { clock, recorder } = this.#options;
    const patience = clock.after(journalPatienceMs, () => {
      const message =
        'Waiting for the API server to accept the record of the volume, which is created once that is written';
      recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    });
    try {
      return await open();
    } catch (error) {
      throw this.#reportWaiting(claim, error);
    } finally {
      patience.cancel();
    }
  }

  /**
   * Calls the backend, which finds what an earlier attempt may have created.
   *
   * @returns the volume to save, or `Stopped` if its claim was deleted meanwhile.
   * @throws the error that ends the attempt, after the intent was updated.
   */
  async #create(intent: Intent, signal: AbortSignal): Promise<PersistentVolume | Stopped> {
    const { provisioner, guard, intents, addFinalizer } = this.#options;
    const couldExist = mayExist(intent.state); // before `withCallUnderWay`, which sets it
    const permit = withRecheck(this.#options.permit, () => intents.checkOwned(intent));
    const beforeDelete = (handle: string): Promise<void> =>
      guard.beforeDelete(intent, handle, { wantedByClaim: true, isClaimThere: true, signal });
    let made: PersistentVolume;
    try {
      // before the call is noted as under way; the provisioner, which may wait meanwhile, awaits the same permit directly before it
      made = await whenPermitted(permit, signal, () =>
        intents.withCallUnderWay(intent, () =>
          provisioner.fulfil(intent.record.plan, {
            signal,
            permit,
            planned: intent.planned,
            mayExist: couldExist,
            beforeDelete,
            created: (handle) => void intents.on(intent, { type: 'named', handle }),
          }),
        ),
      );
    } catch (error) {
      if (mayExist(intent.state)) throw await noteFailure(this.#options, intent, error, { couldExist, signal });
      intents.close(intent); // the backend was not called: the next attempt makes a new plan
      throw error;
    }
    if (!intents.isOpen(intent)) await intents.reopen(intent, made.spec, signal);
    intents.on(intent, { type: 'made' });
    if (this.#cached(intent) === undefined) return claimGone; // the sync that the deletion has queued revokes it
    const { volume } = intent.record;
    const named = { ...made, metadata: { ...made.metadata, name: volume.name } };
    return this.#withRetainOfClass(completeVolume(named, volume, { addFinalizer }), volume);
  }

  /** Sets Retain if the class, recreated since the record was written, now says so. */
  #withRetainOfClass(volume: PersistentVolume, { className: name }: VolumeTemplate): PersistentVolume {
    if (this.#options.classes.get(name)?.reclaimPolicy !== 'Retain') return volume;
    return { ...volume, spec: { ...volume.spec, persistentVolumeReclaimPolicy: 'Retain' } };
  }

  failed(): void {
    // the intent was updated before
  }

  unsaved(): void {
    // the intent was updated before
  }

  ended(): void {
    // nothing is kept besides the intent
  }

  /** Marks the record if the stored volume is that of another instance: the claim may have moved while this one was away. */
  async #noteOtherStorage(intent: Intent, signal: AbortSignal): Promise<void> {
    const { provisioner, client, intents } = this.#options;
    if (provisioner.isElsewhere === undefined || intent.state.kind === 'foreign' || !mayExist(intent.state)) return;
    const stored = await storedVolume(client, intent.record.volume.name, signal);
    if (stored !== undefined && provisioner.isElsewhere(stored)) intents.setNameTaken(intent, true);
  }

  #closeServed(intent: Intent): void {
    const { volume, nameTaken = false } = intent.record;
    if (nameTaken) {
      // the claim's storage has no PersistentVolume: its record is kept until the claim is gone
      reportStuck(this.#options, intent, `PersistentVolume ${JSON.stringify(volume.name)} has other storage`);
    } else if (intent.state.kind !== 'foreign') this.#options.revokeQueue.closeNowOrAfterLateCalls(intent);
  }

  /** The options of an attempt for an open intent. The class may be gone: then the record has all that is known of it. */
  #optionsOf({ record: { volume } }: Intent, claim: PersistentVolumeClaim): ProvisionOptions {
    const { className: name, provisioner, defaults } = volume;
    const known = this.#options.classes.get(name);
    const { persistentVolumeReclaimPolicy: reclaimPolicy, mountOptions } = defaults;
    const storageClass = known ?? {
      metadata: { name },
      provisioner,
      ...(reclaimPolicy !== undefined && { reclaimPolicy }),
      ...(mountOptions !== undefined && { mountOptions }),
    };
    return { claim, storageClass, volumeName: volume.name, selectedNodeName: selectedNode(claim) };
  }

  #cached({ record }: Intent): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, record.claim.uid)[0];
  }

  /** @throws as `Intents.checkName`; then the claim is synced again when the name is free. */
  #checkName(uid: string, name: string): void {
    const { intents, waits } = this.#options;
    try {
      intents.checkName(uid, name);
    } catch (error) {
      waits.add(uid, `name/${name}`);
      throw error;
    }
  }

  /** Records an event on the claim if the error means that it waits for something else. @returns the error. */
  #reportWaiting(claim: PersistentVolumeClaim, error: unknown): unknown {
    const message = waitingText(error);
    if (message !== undefined)
      this.#options.recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    return error;
  }
}

function namesOf(claim: PersistentVolumeClaim): { namespace: string; name: string; uid: string } {
  const { namespace = '', name } = claim.metadata;
  return { namespace, name, uid: claimUid(claim) };
}

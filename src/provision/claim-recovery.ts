/** Claims of a `Recoverable` provisioner: what is recorded before the backend is asked, and what becomes of an open record. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { momentOf, type Permit } from '../base/permit.ts';
import type { Informer } from '../kube/informer.ts';
import type { Lister } from '../kube/lister.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Recorder } from '../kube/recorder.ts';
import { orderOf } from '../kube/resource-version.ts';
import { claimReference, claimUid, selectedNode } from './claim-facts.ts';
import { type ClaimWish, claimWish } from './claim-wish.ts';
import { volumeTemplate } from './complete-volume.ts';
import type { DeletionGuard } from './deletion-guard.ts';
import { waitingReason } from './event-reasons.ts';
import { Fulfilment } from './fulfilment.ts';
import { type Intent, isBeingUndone } from './intent.ts';
import type { Intents } from './intents.ts';
import { VolumeAbandonedError } from './volume-abandoned-error.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { ProvisionStopped } from './provision-stopped.ts';
import type { ProvisionOptions } from './provisioner.ts';
import type { RecentlySaved } from './recently-saved.ts';
import type { Plan, Recoverable } from './recoverable.ts';
import { reportStuck } from './report-stuck.ts';
import type { Revoker } from './revoker.ts';
import { SaveLook } from './save-look.ts';
import { isServed } from './served-intent.ts';
import { storedVolume } from './stored-volume.ts';
import type { SaveAttempt, VolumeStore } from './volume-store.ts';
import { waitingText } from './waiting-text.ts';

/** How long the journal may keep a claim waiting before an event says so, in milliseconds. */
const journalPatienceMs = 30_000;

export interface ClaimRecoveryOptions {
  provisioner: Recoverable;
  intents: Intents;
  guard: DeletionGuard;
  revoker: Pick<Revoker, 'add' | 'closeServed'>;
  store: VolumeStore;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Lister<PersistentVolume> & Pick<Informer<PersistentVolume>, 'version'>;
  classes: Lister<StorageClass>;
  /** UIDs of claims whose volume was saved, which the cache of claims may not show yet. */
  recentlyServed: Pick<RecentlySaved, 'has' | 'add'>;
  isKnownProvisioner: (name: string) => boolean;
  addFinalizer: boolean;
  client: KubeClient;
  recorder: Recorder;
  permit: Permit | undefined;
  clock: Clock;
  logger: Logger;
}

export class ClaimRecovery {
  readonly #options: ClaimRecoveryOptions;
  readonly #fulfilment: Fulfilment;

  constructor(options: ClaimRecoveryOptions) {
    this.#options = options;
    this.#fulfilment = new Fulfilment(options);
  }

  /**
   * The checks before a new volume is begun, besides those of `admitClaim`.
   *
   * @throws {ProvisionStopped} when the claim has its volume or is gone, which the cache does not show yet.
   * @throws {NameInUseError} while another claim's volume of the name is in the making, {DrainingError} while none may be begun.
   */
  async admit({ claim, volumeName }: ProvisionOptions, signal: AbortSignal): Promise<void> {
    const { guard, intents, recentlyServed } = this.#options;
    try {
      intents.checkDrain();
      intents.checkName(claimUid(claim), volumeName);
    } catch (error) {
      throw this.#recordWaiting(claim, error);
    }
    if (!recentlyServed.has(claimUid(claim))) return;
    const wish = await guard.wish({ claim: namesOf(claim) }, signal);
    if (wish !== 'wanted') throw new ProvisionStopped('the claim has its volume, or is gone');
  }

  /**
   * Plans, records and makes the storage of a claim without an open intent.
   *
   * @throws as `fulfil`, as the provisioner's `plan`, and what the journal throws.
   */
  async make(options: ProvisionOptions, signal: AbortSignal): Promise<PersistentVolume> {
    const { provisioner, intents, volumes } = this.#options;
    // before anything is planned: whatever happens to volumes from now on is known
    const version = intents.wasServed(claimUid(options.claim)) ? undefined : volumes.version;
    const plan = await provisioner.plan(options, { signal });
    const intent = await this.#begin(plan, options, { version, signal });
    return this.#fulfilment.begin(intent, options.claim, signal);
  }

  /** Resolves once the backend may be asked. */
  async #begin(
    plan: Plan,
    options: ProvisionOptions,
    { version, signal }: { version: string | undefined; signal: AbortSignal },
  ): Promise<Intent> {
    const { intents, clock, recorder } = this.#options;
    const { claim } = options;
    const patience = clock.after(journalPatienceMs, () => {
      const message =
        'Waiting for the API server to accept the record of the volume. The volume is created once the record is written';
      recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    });
    try {
      return await intents.begin(
        {
          claim: namesOf(claim),
          volume: volumeTemplate(options),
          plan,
          phase: 'create',
          ...(version !== undefined && !Number.isNaN(orderOf(version)) && { since: version }),
          createdAt: new Date(clock.wallMs()).toISOString(),
        },
        signal,
      );
    } catch (error) {
      throw this.#recordWaiting(claim, error);
    } finally {
      patience.cancel();
    }
  }

  /**
   * What to do about an open intent.
   *
   * @param claim - from the cache; undefined: it is not there any more.
   * @returns the claim when the volume is to be made for it now; undefined when there is nothing to do, or others do it.
   * @throws for another attempt later.
   */
  async resume(
    intent: Intent,
    claim: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim | undefined> {
    const { provisioner, intents, revoker, store, clock, isKnownProvisioner } = this.#options;
    const { record } = intent;
    if (isBeingUndone(intent, clock.monotonicMs()) || intent.served) return undefined;
    const wish = await claimWish(record, claim, {
      isKnownProvisioner,
      qualifies: (it) => provisioner.shouldProvision?.(it, { signal }) ?? true,
    });
    if (wish === 'has-it' && record.nameTaken === true) {
      // what was made for the claim is in no volume: it stays recorded until that claim is gone
      reportStuck(this.#options, intent, `PersistentVolume ${JSON.stringify(record.volume.name)} has other storage`);
      return undefined;
    }
    if (wish === 'has-it') {
      if (intent.owner !== 'foreign') revoker.closeServed(intent);
      return undefined;
    }
    if (claim === undefined || wish !== 'wanted' || intent.deleteSent) {
      if (record.phase !== 'unproved') revoker.add(intent);
      return undefined;
    }
    if (isBeingUndone(intent, clock.monotonicMs())) return undefined; // the second look has begun meanwhile
    intent.revoking = false;
    if (store.isUnsaved(record.volume.name)) return undefined;
    try {
      intents.checkName(claimUid(claim), record.volume.name);
      if (await isServed(this.#options, intent, claim, signal)) return undefined;
      await intents.takeOver(intent, signal);
    } catch (error) {
      throw this.#recordWaiting(claim, error);
    }
    await intents.leaveDelete(intent, signal); // one that was begun, and could not be sent
    return claim;
  }

  /** The options of an attempt for an open intent. The class may be gone: then only what the record knows of it is there. */
  attempt({ record: { volume } }: Intent, claim: PersistentVolumeClaim): ProvisionOptions {
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

  /** Makes the storage of an open intent, as `Fulfilment.attempt`. */
  fulfil(intent: Intent, signal: AbortSignal): Promise<PersistentVolume> {
    return this.#fulfilment.attempt(intent, signal);
  }

  /**
   * Before the object of a volume is created. If an earlier request of any process may have created it, the claim is read live: an
   * administrator may have removed both since then to keep the storage, which a second object would have reclaimed.
   *
   * @returns the object, if it exists already: then nothing is to be sent.
   * @throws {VolumeAbandonedError} when it is not there, and its claim does not want it any more, and as `DeletionGuard.wish`.
   */
  async beforeSave(volume: PersistentVolume, signal: AbortSignal): Promise<SaveAttempt | PersistentVolume> {
    const { intents, clock } = this.#options;
    const intent = this.#intentOf(volume);
    if (intent === undefined) return this.#savedOnly(volume, 'its record was closed meanwhile', signal);
    let look: SaveLook | undefined;
    if (intent.saveSent) {
      const beganAt = momentOf(clock);
      const wish = await this.#wish(intent, signal);
      if (wish === 'has-it') return this.#savedOnly(volume, 'its claim was bound to it, and it was removed', signal);
      checkWanted(wish, volume);
      look = new SaveLook({ clock, beganAt, look: async () => checkWanted(await this.#wish(intent, signal), volume) });
    }
    intent.saveSent = true;
    intent.unansweredSaves++;
    return {
      permit: look,
      recheck: () => intents.checkOwned(intent),
      rejected: () => {
        intent.unansweredSaves--;
      },
    };
  }

  #wish({ record }: Intent, signal: AbortSignal): Promise<ClaimWish> {
    return this.#options.guard.wish(record, signal);
  }

  /** A volume that may only have been saved by a former request. */
  async #savedOnly(
    { metadata: { name } }: PersistentVolume,
    why: string,
    signal: AbortSignal,
  ): Promise<PersistentVolume> {
    const stored = await storedVolume(this.#options.client, name, signal);
    if (stored === undefined) throw new VolumeAbandonedError(name, why);
    return stored;
  }

  /** Another process has closed the record, or works on it: nothing is saved for it here any more. */
  lost({ record: { claim, volume } }: Intent): void {
    const { store, recentlyServed } = this.#options;
    recentlyServed.add(claim.uid); // by the other process, which the cache may not show yet
    store.abandon(volume.name).catch(() => undefined); // it never rejects
  }

  /** The volume of an intent has its object now. */
  saved(volume: PersistentVolume): void {
    const intent = this.#intentOf(volume);
    if (intent !== undefined) this.#options.revoker.closeServed(intent);
  }

  /** It was tried in vain to save the volume of an intent: a request without a clear answer may still be carried out. */
  unsaved(volume: PersistentVolume): void {
    const intent = this.#intentOf(volume);
    if (intent !== undefined) this.#options.intents.abandoned(intent);
  }

  /** The name of the volume is taken by other storage, or for another claim. */
  taken(volume: PersistentVolume): void {
    const intent = this.#intentOf(volume);
    if (intent !== undefined) this.#options.intents.setNameTaken(intent, true);
  }

  #intentOf({ metadata: { name }, spec: { claimRef } }: PersistentVolume): Intent | undefined {
    const intent = this.#options.intents.get(claimRef?.uid ?? '');
    return intent?.record.volume.name === name ? intent : undefined;
  }

  /** Records an event on the claim if the error means that it waits for something else. @returns the error. */
  #recordWaiting(claim: PersistentVolumeClaim, error: unknown): unknown {
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

function checkWanted(wish: ClaimWish, { metadata: { name } }: PersistentVolume): void {
  if (wish === 'wanted') return;
  const why = wish === 'gone' ? 'the claim was deleted meanwhile' : 'the claim has its volume, or another one';
  throw new VolumeAbandonedError(name, why);
}

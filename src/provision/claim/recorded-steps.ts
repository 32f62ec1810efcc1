/**
 * The steps of a `Recoverable` provisioner: plan, record and create. The plan is recorded before the backend is called, and fulfilled
 * as often as needed.
 */
import { whenPermitted, withRecheck } from '../../base/permit.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { orderOf } from '../../kube/kube-object.ts';
import { nodeName } from '../cache/cached-claim.ts';
import { uidIndex } from '../cache/informers.ts';
import { claimReference, claimUid } from '../claim-fields.ts';
import { waitingReason } from '../event-reasons.ts';
import type { IntentRecord, VolumeTemplate } from '../intent-journal/intent-journal.ts';
import { mayExist } from '../intents/intent-state.ts';
import type { Intent } from '../intents/intent.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import type { ProvisionOptions } from '../provisioner.ts';
import { checkPlan, Planned } from '../recoverable.ts';
import type { DeletionGuard } from '../revoke/deletion-guard.ts';
import { completeVolume, volumeTemplate } from '../volume-template.ts';
import type { RecentlySaved } from '../volume/save-volume.ts';
import { storedVolume } from '../volume/stored-volume.ts';
import { noteFailure } from './attempt-failure.ts';
import { type Attempt, type AttemptSteps, Stopped } from './attempt-steps.ts';
import { checkName, reportWaiting, resumeIntent, type ResumeOptions } from './resume-intent.ts';

/** How long the journal may keep a claim waiting before an event says so, in milliseconds. */
const journalPatienceMs = 30_000;

const claimGone = new Stopped('claim-gone', 'the claim was deleted meanwhile');

interface RecordedStepsOptions extends Omit<ResumeOptions, keyof Environment> {
  guard: DeletionGuard;
  claims: Lister<PersistentVolumeClaim>;
  volumes: Pick<Informer<PersistentVolume>, 'get' | 'version'>;
  /** UIDs of claims whose volume was saved, which the cache of claims may not show yet. */
  recentlyServedClaims: Pick<RecentlySaved, 'has'>;
  addFinalizer: boolean;
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

  async resume(
    uid: string,
    claim: PersistentVolumeClaim | undefined,
    signal: AbortSignal,
  ): Promise<Attempt | 'nothing-to-do'> {
    const intent = this.#options.intents.get(uid);
    return intent === undefined ? 'nothing-to-do' : resumeIntent(this.#options, intent, claim, signal);
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
      checkName(this.#options, claimUid(claim), volumeName);
    } catch (error) {
      throw reportWaiting(this.#options, claim, error);
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
      throw reportWaiting(this.#options, claim, error);
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

  #cached({ record }: Intent): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, record.claim.uid)[0];
  }
}

function namesOf(claim: PersistentVolumeClaim): { namespace: string; name: string; uid: string } {
  const { namespace = '', name } = claim.metadata;
  return { namespace, name, uid: claimUid(claim) };
}

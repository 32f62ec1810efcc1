/** An attempt to make the volume of an open intent, and what its end reveals about the backend. */
import { type Permit, permitted, rechecked } from '../base/permit.ts';
import type { Lister } from '../kube/lister.ts';
import type { Recorder } from '../kube/recorder.ts';
import { nodeName } from './cached-claim.ts';
import { completeVolume } from './complete-volume.ts';
import { type DeletionGuard, ReportOnlyError } from './deletion-guard.ts';
import { UnprovedError, VolumeExistsError, VolumeSeenError } from './deletion-proof.ts';
import { uidIndex } from './informers.ts';
import type { Intent } from './intent.ts';
import type { Intents } from './intents.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { ProvisionStopped } from './provision-stopped.ts';
import { ProvisionError } from './provisioner.ts';
import type { Recoverable } from './recoverable.ts';
import { reportStuck } from './report-stuck.ts';
import type { Revoker } from './revoker.ts';

const goneText = 'the claim was deleted meanwhile';
const reselectedText = 'another node was selected meanwhile';

export interface FulfilmentOptions {
  provisioner: Recoverable;
  intents: Intents;
  guard: DeletionGuard;
  revoker: Pick<Revoker, 'add'>;
  claims: Lister<PersistentVolumeClaim>;
  addFinalizer: boolean;
  recorder: Recorder;
  permit: Permit | undefined;
}

export class Fulfilment {
  readonly #options: FulfilmentOptions;

  constructor(options: FulfilmentOptions) {
    this.#options = options;
  }

  /**
   * The first attempt for a new intent. The claim may have changed while its record was written; such a change has
   * queued it.
   *
   * @param planned - the claim that the intent was planned for.
   * @throws as `attempt`.
   */
  async begin(intent: Intent, planned: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolume> {
    const cached = this.#cached(intent);
    intent.plannedNode = nodeName(planned);
    if (cached !== undefined && nodeName(cached) === intent.plannedNode) return this.attempt(intent, signal);
    this.#options.intents.close(intent);
    throw new ProvisionStopped(cached === undefined ? goneText : reselectedText);
  }

  /**
   * Makes the storage of an open intent.
   *
   * @returns the volume as it will be saved.
   * @throws {ProvisionStopped} when the claim was deleted meanwhile: no volume is saved for it.
   * @throws {ProvisionError} and whatever else ends an attempt; the intent knows by then what may be left.
   */
  async attempt(intent: Intent, signal: AbortSignal): Promise<PersistentVolume> {
    const { provisioner, guard, intents, addFinalizer } = this.#options;
    const permit = rechecked(this.#options.permit, () => intents.checkOwned(intent));
    const mayExist = intent.mayExist;
    let made: PersistentVolume;
    try {
      made = await permitted(permit, signal, () =>
        intents.ask(intent, () =>
          provisioner.fulfil(intent.record.plan, {
            signal,
            permit,
            mayExist,
            beforeDelete: (handle) => guard.beforeDelete(intent, handle, { wantedByClaim: true, signal }),
          }),
        ),
      );
    } catch (error) {
      if (intent.mayExist) throw await this.#afterFailure(intent, error, { mayExist, signal });
      intents.close(intent); // the backend was not called: the next attempt makes a new plan
      throw error;
    }
    await intents.reopen(intent, made.spec, signal);
    if (this.#cached(intent) === undefined) {
      intents.unclear(intent); // the sync that the deletion has queued undoes it
      throw new ProvisionStopped(goneText);
    }
    intents.made(intent);
    const { volume } = intent.record;
    const named = { ...made, metadata: { ...made.metadata, name: volume.name } };
    return completeVolume(named, volume, { addFinalizer });
  }

  #cached({ record }: Intent): PersistentVolumeClaim | undefined {
    return this.#options.claims.byIndex(uidIndex, record.claim.uid)[0];
  }

  #hasPlannedNode(intent: Intent): boolean {
    const cached = this.#cached(intent);
    return cached !== undefined && nodeName(cached) === intent.plannedNode;
  }

  /** @returns what the attempt failed with. */
  async #afterFailure(
    intent: Intent,
    error: unknown,
    { mayExist, signal }: { mayExist: boolean; signal: AbortSignal },
  ): Promise<unknown> {
    const { intents, revoker } = this.#options;
    if (!(error instanceof ProvisionError) || error.state === 'in-background') {
      if (!intents.isOpen(intent) && !signal.aborted) await intents.reopen(intent, {}, signal);
    }
    if (!(error instanceof ProvisionError)) {
      intents.unclear(intent);
      if (error instanceof UnprovedError || error instanceof VolumeSeenError) {
        await intents.leaveDelete(intent, signal); // what was made is not fit, and has to stay
        intents.unproved(intent, error.message);
      } else if (error instanceof ReportOnlyError || error instanceof VolumeExistsError) {
        await intents.leaveDelete(intent, signal);
        intents.stuck(intent, error instanceof ReportOnlyError ? error.reason : 'undecidable', error.message);
      } else if (intent.deleteSent) revoker.add(intent);
      return error;
    }
    const { state, afterUnclear, message } = error;
    if (state === 'no-change') {
      intent.mayExist = mayExist;
      if (!mayExist)
        intents.close(intent); // nothing was sent: the next attempt plans anew
      else if (afterUnclear === 'undecidable') reportStuck(this.#options, intent, message);
    } else if (afterUnclear === 'absent') {
      await intents.closeNow(intent, signal);
    } else if (intent.deleteSent) {
      intents.unclear(intent);
      revoker.add(intent); // what was made is not fit, and has to go before another is made
    } else if (state === 'in-background') {
      intents.unclear(intent);
    } else if (!mayExist || (afterUnclear === 'absent-if-repeated' && intents.noRoom(intent))) {
      intents.close(intent);
      // another node, which was not tried yet, may be selected by now: the next attempt is for that one
      if (state === 'reschedule' && !this.#hasPlannedNode(intent))
        return new ProvisionError(message, { state: 'finished', cause: error });
    } else {
      if (afterUnclear === 'undecidable') reportStuck(this.#options, intent, message);
      // an earlier attempt may have left a volume, which no other node may get
      if (state === 'reschedule') return new ProvisionError(message, { state: 'in-background', cause: error });
    }
    return error;
  }
}

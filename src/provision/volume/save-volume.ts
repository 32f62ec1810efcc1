/** Saves one PersistentVolume, with one request that creates it. `VolumeStore` repeats that. */
import type { Clock } from '../../base/clock.ts';
import type { Permit } from '../../base/permit.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { AlreadyExistsError, isNotCarriedOut } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { claimReference } from '../claim-fields.ts';
import { failedReason, succeededReason } from '../event-reasons.ts';
import { VolumeAbandonedError } from '../intents/intent-index.ts';
import type { Intent } from '../intents/intent.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import {
  checkStored,
  ClassDroppedError,
  hasItsAttributesClass,
  madeElsewhere,
  storedVolume,
  VolumeTakenError,
} from './stored-volume.ts';

/** What belongs to one request that creates a volume. */
export interface SaveAttempt {
  /** Valid while what was read before the request is recent; renewed by reading again. Undefined: nothing expires. */
  permit: Permit | undefined;
  /** To be called after a pause, before it is sent. @throws {VolumeAbandonedError} when it must not be sent any more. */
  recheck: () => void;
  /** To be called when it has ended. @param isClear - it has created nothing that was not returned, and cannot any more. */
  ended: (isClear: boolean) => void;
}

/** A volume that the next request may create, and the intent in which that request is counted. An earlier request may have created it already. */
export interface UnsavedVolume extends Pick<SaveAttempt, 'permit'> {
  found?: undefined;
  intent: Intent;
}

/** What is called at each stage of saving a volume; implemented by the `SaveGuard` of a `Recoverable` provisioner. */
export interface SaveHooks {
  /**
   * Called before each request that creates the object: if an earlier request may have created it, checks that the claim still wants it, or
   * reads the object. The save fails with what this throws; for a `VolumeAbandonedError` the store gives the volume up.
   *
   * @returns the object, or what `beginSave` takes: always that for a new volume.
   */
  findEarlierSave(volume: PersistentVolume, signal: AbortSignal): Promise<{ found: PersistentVolume } | UnsavedVolume>;
  /** Counts the request as sent: to be called directly before it, with nothing awaited between. */
  beginSave(unsaved: UnsavedVolume): SaveAttempt;
  /** The API server has the volume: its claim counts as served, and its record is closed, now or after late calls. */
  saved(volume: PersistentVolume): void;
  /** No retry can save the volume, as its name is taken by another one. */
  taken(volume: PersistentVolume): void;
  /** The volume was given up in the background. */
  dropped(volume: PersistentVolume): void;
}

export interface SaveParts extends Pick<Environment, 'client' | 'recorder' | 'meaningOf' | 'logger'> {
  volumes: Pick<Lister<PersistentVolume>, 'get'>;
  /** Receives the names of saved volumes that the cache does not show yet. */
  recentlySaved: Pick<RecentlySaved, 'add'>;
  /** Undefined for a provisioner that is not `Recoverable`. */
  saveHooks: SaveHooks | undefined;
  /** As `isElsewhere` of a `Recoverable`. */
  isElsewhere: ((volume: PersistentVolume) => boolean) | undefined;
  /** Receives the error that keeps a volume unsaved, by the UID of its claim. */
  lastErrors: { add: (uid: string, error: unknown) => void } | undefined;
}

/** One attempt to save a volume. */
interface SaveCall {
  signal: AbortSignal;
  /** Called before the request that creates it. */
  onSend: () => void;
  /** Called when that request has certainly created nothing, and cannot any more. */
  onRejected: () => void;
}

/**
 * Creates the object. One that exists counts as created when it is for the same claim and of the same storage: then
 * the response to an earlier attempt was lost.
 *
 * An attributes class that the API server has dropped is set by a patch, which may reach another server: while a control plane
 * is upgraded, some have the feature and some do not. Kubernetes does not bind a volume without the class of its claim.
 *
 * @throws {VolumeTakenError} when it is another one, {VolumeAbandonedError} when nothing is done for it here any more,
 * {ClassDroppedError}, {ApiError} and {TransportError}.
 */
export async function savePersistentVolume(parts: SaveParts, volume: PersistentVolume, call: SaveCall): Promise<void> {
  const { client } = parts;
  const { signal } = call;
  const { saveHooks: hooks } = parts;
  const earlier = await hooks?.findEarlierSave(volume, signal); // undefined: there are no hooks
  let stored: PersistentVolume;
  if (earlier?.found !== undefined) stored = checked(earlier.found, parts, volume);
  else {
    const { permit, recheck, ended } = (earlier && hooks?.beginSave(earlier)) ?? {};
    call.onSend();
    try {
      stored = await client.create(persistentVolumes, volume, { signal, permit, recheck });
      ended?.(true);
    } catch (error) {
      const isRejected = error instanceof VolumeAbandonedError || isNotCarriedOut(error);
      ended?.(isRejected);
      if (isRejected) call.onRejected();
      if (!(error instanceof AlreadyExistsError)) throw error;
      const existing = await storedVolume(client, volume.metadata.name, signal);
      if (existing === undefined) throw error; // gone again: the next attempt creates it
      stored = checked(existing, parts, volume);
    }
  }
  for (let tries = 0; tries < 2 && !hasItsAttributesClass(stored, volume); tries++) {
    stored = await setAttributesClass(client, volume, signal);
  }
  if (!hasItsAttributesClass(stored, volume)) throw new ClassDroppedError(volume);
  rememberUntilCached(parts, volume);
  hooks?.saved(volume);
}

/** To be called as soon as the API server has the volume, and before `SaveHooks.saved`. */
function rememberUntilCached(
  { volumes, recentlySaved }: Pick<SaveParts, 'volumes' | 'recentlySaved'>,
  { metadata: { name } }: PersistentVolume,
): void {
  if (volumes.get(name) === undefined) recentlySaved.add(name);
}

/** @throws {VolumeTakenError} when what is stored is another volume. */
function checked(
  stored: PersistentVolume,
  { saveHooks, isElsewhere }: SaveParts,
  volume: PersistentVolume,
): PersistentVolume {
  try {
    checkStored(stored, volume);
    // two backends may give the same handle, such as one that is derived from the name
    if (isElsewhere?.(stored) === true) throw madeElsewhere(volume);
  } catch (error) {
    if (error instanceof VolumeTakenError) saveHooks?.taken(volume);
    throw error;
  }
  return stored;
}

async function setAttributesClass(
  client: KubeClient,
  { metadata: { name }, spec: { volumeAttributesClassName } }: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const body = { spec: { volumeAttributesClassName } };
  return client.patch<PersistentVolume>(
    persistentVolumes,
    { name },
    { type: 'merge', body },
    { signal, newConnection: true },
  );
}

/** Text of the event of a volume that could not be saved, as in the Go sidecar. */
export function saveFailure(claim: PersistentVolumeClaim, { message }: Error): string {
  return `Error creating provisioned PV object for claim ${objectKey(claim)}: ${message}`;
}

/** Records on the claim that the name of its volume is taken. */
export function reportTaken(
  { recorder }: Pick<SaveParts, 'recorder'>,
  claim: PersistentVolumeClaim,
  error: VolumeTakenError,
): void {
  recorder.event(claimReference(claim), 'Warning', failedReason, saveFailure(claim, error));
}

/** Records on the claim that its volume was created. */
export function reportSuccess({ recorder }: SaveParts, claim: PersistentVolumeClaim, volume: PersistentVolume): void {
  recorder.event(
    claimReference(claim),
    'Normal',
    succeededReason,
    `Successfully provisioned volume ${volume.metadata.name}`,
  );
}

/** How long a saved volume may take to reach the cache, in milliseconds. */
const lifeDefaultMs = 60_000;

/**
 * Volumes that were saved and that the cache may not show yet, by their names or by the UIDs of their claims. Without it the
 * next event of the claim would provision it a second time.
 */
export class RecentlySaved {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #untilMs = new Map<string, number>();

  /** @param options.lifeMs - how long one is remembered, in milliseconds. Default 60,000. */
  constructor(options: { clock: Clock; lifeMs?: number }) {
    this.#clock = options.clock;
    this.#lifeMs = options.lifeMs ?? lifeDefaultMs;
  }

  add(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [each, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break; // they are in the order of time
      this.#untilMs.delete(each);
    }
    this.#untilMs.delete(key);
    this.#untilMs.set(key, nowMs + this.#lifeMs);
  }

  /** The cache shows the volume, or has seen its deletion. */
  delete(key: string): void {
    this.#untilMs.delete(key);
  }

  has(key: string): boolean {
    return (this.#untilMs.get(key) ?? -Infinity) > this.#clock.monotonicMs();
  }
}

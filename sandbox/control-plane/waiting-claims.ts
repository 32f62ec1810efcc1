import { annotation } from './annotations.ts';
import { claimClass } from './claim-class.ts';
import { MultiMap } from './multi-map.ts';
import { hasAnnotation, keyOf } from './object-access.ts';
import type { Claim } from './objects.ts';

interface Place {
  className: string;
  volumeName: string;
}

/** Claims that are not bound yet, by what they may be waiting for, so that its arrival wakes them at once. */
export class WaitingClaims {
  readonly #places = new Map<string, Place>();
  readonly #byClass = new MultiMap<string>();
  readonly #byVolume = new MultiMap<string>();

  /** Files the claim under its class and wanted volume, or forgets it once binding is complete. */
  note(claim: Claim): void {
    const key = keyOf(claim);
    this.forget(key);
    if (hasAnnotation(claim, annotation.bindCompleted)) return;
    const place = { className: claimClass(claim), volumeName: claim.spec.volumeName ?? '' };
    this.#places.set(key, place);
    this.#byClass.add(place.className, key);
    if (place.volumeName !== '') this.#byVolume.add(place.volumeName, key);
  }

  /** Safe to repeat. */
  forget(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#byClass.delete(place.className, key);
    this.#byVolume.delete(place.volumeName, key);
  }

  has(key: string): boolean {
    return this.#places.has(key);
  }

  /** Keys of the waiting claims of the class, oldest first; the empty name stands for claims without one. */
  ofClass(className: string): Iterable<string> {
    return this.#byClass.get(className);
  }

  /** Keys of the waiting claims that name this volume. */
  ofVolume(volumeName: string): Iterable<string> {
    return this.#byVolume.get(volumeName);
  }
}

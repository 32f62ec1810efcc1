import type { Permit } from '../../../src/base/permit.ts';

/** A permit that is lost, as by a pause of the process, and had again once somebody asks for it. */
export class ScriptedPermit implements Permit {
  isValid = true;
  #meanwhile: () => void = () => undefined;

  /** @param meanwhile - what others have done until it is had again. */
  lose(meanwhile: () => void): void {
    this.isValid = false;
    this.#meanwhile = meanwhile;
  }

  renewed(): Promise<void> {
    if (!this.isValid) this.#meanwhile();
    this.isValid = true;
    return Promise.resolve();
  }
}

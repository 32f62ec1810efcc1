import type { Clock } from '../base/clock.ts';
import type { Resource } from '../kube/kube-object.ts';
import type { ApiPresence, OptionalApi } from './optional-api.ts';

/** The API of attributes classes, as a provisioner uses it. */
export interface AttributesClassApi {
  /** The resource in the version that was found last. */
  readonly served: Resource;
  /** The last check has found none, and a class is not to be read: without the API its permission may be missing, too. */
  readonly isMissing: boolean;
  /** Checks once which version is served. */
  check(signal?: AbortSignal): Promise<ApiPresence>;
  /** Whether a claim that names a class is provisioned with it; asked once in each attempt. */
  appliesTo(claimUid: string, signal?: AbortSignal): Promise<boolean>;
  /** Drops what was kept for the claim. */
  forget(claimUid: string): void;
}

export interface FoundAttributesClassApiOptions {
  api: Pick<OptionalApi, 'served' | 'presence' | 'check'>;
  /** Never provision without the class: fail until the API is served. Default false. */
  required?: boolean;
  clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * How long, in milliseconds, and how often in a row an API that was served before must have been missing for a claim before its
 * class is left out. While a control plane is upgraded or rolled back, one of its API servers serves the API and another does
 * not, and Kubernetes does not bind a volume without the class of its claim. Each attempt may reach another server.
 */
const missingMs = 60_000;
const missingTimes = 5;

/** Attributes classes where the API server decides whether there are any. */
export class FoundAttributesClassApi implements AttributesClassApi {
  readonly #options: FoundAttributesClassApiOptions;
  /** By claim: since when, and in how many attempts in a row, the API has been missing. */
  readonly #missing = new Map<string, { sinceMs: number; times: number }>();
  #wasServed = false;

  constructor(options: FoundAttributesClassApiOptions) {
    this.#options = options;
  }

  get served(): Resource {
    return this.#options.api.served;
  }

  get isMissing(): boolean {
    const { api, required = false } = this.#options;
    return !required && api.presence === 'absent';
  }

  async check(signal?: AbortSignal): Promise<ApiPresence> {
    const found = await this.#options.api.check(signal);
    if (found === 'present') {
      this.#wasServed = true;
      this.#missing.clear();
    }
    return found;
  }

  /**
   * False where this process has never found the API, and once it has been missing for a minute and in five attempts of the
   * claim. Until then the class cannot be read.
   */
  async appliesTo(claimUid: string, signal?: AbortSignal): Promise<boolean> {
    if (!this.isMissing || (await this.check(signal)) !== 'absent') return true;
    if (!this.#wasServed) return false;
    const nowMs = this.#options.clock.monotonicMs();
    const { sinceMs, times } = this.#missing.get(claimUid) ?? { sinceMs: nowMs, times: 0 };
    this.#missing.set(claimUid, { sinceMs, times: times + 1 });
    return times + 1 < missingTimes || nowMs - sinceMs < missingMs;
  }

  forget(claimUid: string): void {
    this.#missing.delete(claimUid);
  }
}

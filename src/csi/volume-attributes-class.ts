import type { Clock } from '../base/clock.ts';
import { goQuote } from '../base/go-quote.ts';
import { shortValue } from '../base/short-value.ts';
import { ApiError, isUnservedResource } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import { failingAs } from './error-policy.ts';
import type { ApiPresence, OptionalApi } from './optional-api.ts';

/** storage.k8s.io VolumeAttributesClass; its versions differ in name only. */
export interface VolumeAttributesClass extends KubeObject {
  driverName: string;
  parameters?: Record<string, string>;
}

export const volumeAttributesClasses: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'volumeattributesclasses',
  kind: 'VolumeAttributesClass',
  namespaced: false,
};

/** Served by 1.31 to 1.36, off by default; the only version before 1.34. */
export const olderAttributesClassVersions = ['v1beta1'];

/**
 * The mutable parameters a claim's attributes class gives, read live (Kubernetes, "Volume Attributes Classes").
 *
 * @throws {ProvisionError} state `no-change` with the API's own text when it cannot be read, `finished` when it is for
 * another driver.
 */
export async function mutableParameters(options: {
  client: KubeClient;
  /** Absent: v1 is served. */
  api?: AttributesClassApi | undefined;
  name: string;
  driverName: string;
  signal?: AbortSignal | undefined;
}): Promise<Record<string, string>> {
  const { name, driverName } = options;
  const attributesClass = await failingAs('no-change', () => readClass(options));
  if (attributesClass.driverName !== driverName) {
    throw new ProvisionError(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
      { state: 'finished' },
    );
  }
  return { ...attributesClass.parameters };
}

/** Max reads after the first, each over a new connection: the first of these may lead to the same API server. */
const maxRetries = 2;

/** Reads in the version that is known to be served, and again where that has changed or another server has it. */
async function readClass(options: Parameters<typeof mutableParameters>[0]): Promise<VolumeAttributesClass> {
  const { client, api, name, signal } = options;
  const read = (resource: Resource, newConnection = false): Promise<VolumeAttributesClass> =>
    client.get(resource, { name }, { signal, newConnection });
  if (api === undefined) return read(volumeAttributesClasses);
  if (api.isMissing)
    throw new Error(`volume attributes class ${goQuote(shortValue(name))} cannot be read: the API is not served`);
  for (let retries = 0; ; retries++) {
    try {
      return await read(api.served, retries > 0);
    } catch (error) {
      if (retries === maxRetries || !dependsOnServer(error)) throw error;
      if (retries === 0 && (await api.check(signal)) !== 'present') throw error;
    }
  }
}

/** An older API server has no such API, or fails to read from etcd what a newer one has saved in a later version (HTTP 500). */
function dependsOnServer(error: unknown): boolean {
  return isUnservedResource(error) || (error instanceof ApiError && error.code === 500);
}

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

interface FoundAttributesClassApiOptions {
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

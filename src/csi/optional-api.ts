import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { apiVersion, type Resource } from '../kube/kube-object.ts';

/** Pause between two checks for an API that is not served, in milliseconds. */
const recheckMs = 60_000;

/** `unknown`: the server did not say. */
export type ApiPresence = 'present' | 'absent' | 'unknown';

export interface OptionalApiOptions {
  client: KubeClient;
  /** The resource that may be missing, in the version to prefer. */
  resource: Resource;
  /** Versions to use where the preferred one is not served, the best first. Default: none. */
  olderVersions?: readonly string[];
  /**
   * Asks for each version up to twice, over connections of their own: an API that is missing is missing on two API servers, if
   * several are behind the address. Default false.
   */
  asksTwice?: boolean;
  clock: Clock;
  logger: Logger;
}

/** An API that a cluster may lack at first and get later (Kubernetes, "API discovery"). */
export class OptionalApi {
  readonly #options: OptionalApiOptions;
  #presence: ApiPresence = 'unknown';
  #served: Resource;

  constructor(options: OptionalApiOptions) {
    this.#options = options;
    this.#served = options.resource;
  }

  /** Plural name of the resource that may be missing. */
  get resource(): string {
    return this.#options.resource.plural;
  }

  /** What the last check found; no request is made. */
  get presence(): ApiPresence {
    return this.#presence;
  }

  /** The resource in the version that the last check found; in the preferred one where it found none. */
  get served(): Resource {
    return this.#served;
  }

  /** Checks once. Never fails: an inconclusive response gives `unknown`, and `presence` stays as it was. */
  async check(signal?: AbortSignal): Promise<ApiPresence> {
    const { resource, logger } = this.#options;
    const before = this.#presence;
    try {
      const found = await this.#find(signal);
      this.#presence = found === undefined ? 'absent' : 'present';
      this.#served = found ?? resource;
    } catch (error) {
      logger.debug({ err: error, kind: resource.kind }, 'The discovery of an optional API failed');
      return 'unknown';
    }
    if (before === 'absent' && this.#presence === 'present') {
      const { kind, group, version } = this.#served;
      logger.info({ kind, group, version }, 'An optional API was installed');
    }
    return this.#presence;
  }

  async #find(signal: AbortSignal | undefined): Promise<Resource | undefined> {
    const { resource, olderVersions = [], asksTwice = false } = this.#options;
    for (const version of [resource.version, ...olderVersions]) {
      const candidate = { ...resource, version };
      if (await this.#serves(candidate, signal)) return candidate;
      if (asksTwice && (await this.#serves(candidate, signal))) return candidate;
    }
    return undefined;
  }

  async #serves(resource: Resource, signal: AbortSignal | undefined): Promise<boolean> {
    const { client, asksTwice: newConnection } = this.#options;
    const path = `${resource.group === '' ? '/api' : '/apis'}/${apiVersion(resource)}`;
    try {
      const { resources } = await client.raw<{ resources?: { kind?: string }[] }>(path, { signal, newConnection });
      return resources?.some(({ kind }) => kind === resource.kind) === true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Resolves once the API is served; checks about once a minute. @throws the signal's reason when it aborts. */
  async waitUntilPresent(signal: AbortSignal): Promise<void> {
    while (this.#presence !== 'present' && (await this.check(signal)) !== 'present') {
      await this.#options.clock.sleep(recheckMs, { signal });
    }
  }
}

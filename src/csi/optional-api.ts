import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { NotFoundError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { apiVersion, type Resource } from '../kube/kube-object.ts';

/** Pause between two checks for an API that is not served, in milliseconds. */
const recheckMs = 60_000;

/** `unknown`: the server did not say. */
export type ApiPresence = 'present' | 'absent' | 'unknown';

export interface OptionalApiOptions {
  client: KubeClient;
  /** The resource that may be missing. */
  resource: Resource;
  clock: Clock;
  logger: Logger;
}

/** An API that a cluster may lack at first and get later (Kubernetes, "API discovery"). */
export class OptionalApi {
  readonly #options: OptionalApiOptions;
  #presence: ApiPresence = 'unknown';

  constructor(options: OptionalApiOptions) {
    this.#options = options;
  }

  /** Plural name of the resource that may be missing. */
  get resource(): string {
    return this.#options.resource.plural;
  }

  /** What the last check found; no request is made. */
  get presence(): ApiPresence {
    return this.#presence;
  }

  /** Checks once. Never fails: after an inconclusive response the previous result stays. */
  async check(signal?: AbortSignal): Promise<ApiPresence> {
    const { client, resource, logger } = this.#options;
    const path = `${resource.group === '' ? '/api' : '/apis'}/${apiVersion(resource)}`;
    const before = this.#presence;
    try {
      const { resources } = await client.raw<{ resources?: { kind?: string }[] }>(path, { ...(signal && { signal }) });
      this.#presence = resources?.some(({ kind }) => kind === resource.kind) === true ? 'present' : 'absent';
    } catch (error) {
      if (error instanceof NotFoundError) this.#presence = 'absent';
      else logger.debug({ err: error, kind: resource.kind }, 'Looking for an optional API failed');
    }
    if (before === 'absent' && this.#presence === 'present') {
      logger.info({ kind: resource.kind, group: resource.group }, 'An optional API was installed');
    }
    return this.#presence;
  }

  /** Resolves once the API is served; checks about once a minute. @throws the signal's reason when it aborts. */
  async waitUntilPresent(signal: AbortSignal): Promise<void> {
    while (this.#presence !== 'present' && (await this.check(signal)) !== 'present') {
      await this.#options.clock.sleep(recheckMs, { signal });
    }
  }
}

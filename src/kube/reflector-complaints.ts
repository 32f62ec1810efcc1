import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { ApiError, ExpiredError, ForbiddenError, TransportError } from './api-error.ts';
import type { Resource } from './objects.ts';

/** The watch ended at once and empty: something between us and the server closes watches. */
export class ShortWatch extends Error {}

/** The same complaint is logged at most this often, in milliseconds. */
const repeatMs = 60_000;
/** Different complaints remembered at most. */
const remembered = 100;

/** Tells in the log what keeps a reflector from its work: once, with what helps, and seldom again. */
export class ReflectorComplaints {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #resource: Resource;
  readonly #toldAtMs = new Map<string, number>();

  constructor(options: { logger: Logger; clock: Clock; resource: Resource }) {
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#resource = options.resource;
  }

  /** @returns what the failure is called in metrics; undefined where it is counted already. */
  tell(error: unknown): string | undefined {
    if (error instanceof ForbiddenError && !error.isAdmission) return undefined; // `MissingRights` reported it
    const fields = { resource: this.#resource.plural, err: error };
    if (error instanceof ExpiredError) {
      this.#logger.debug(fields, 'The watch is too old, listing again');
      return 'Expired';
    }
    if (!this.#toldLately(`${(error as Error).name}: ${(error as Error).message}`)) this.#log(error, fields);
    if (error instanceof ApiError) return error.reason;
    return error instanceof TransportError ? error.code : 'ShortWatch';
  }

  #toldLately(text: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - (this.#toldAtMs.get(text) ?? -Infinity) < repeatMs) return true;
    if (this.#toldAtMs.size >= remembered) this.#toldAtMs.clear();
    this.#toldAtMs.set(text, nowMs);
    return false;
  }

  #log(error: unknown, fields: object): void {
    if (error instanceof ApiError && error.code === 404) {
      this.#logger.warn(fields, 'The API server does not serve the resource, asking again');
    } else if (error instanceof ShortWatch) {
      this.#logger.info(fields, 'A watch ended at once, listing again');
    } else {
      this.#logger.error(fields, 'Reading a resource failed, trying again');
    }
  }
}

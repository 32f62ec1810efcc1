import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { ForbiddenError } from './api-error.ts';

/** The same resource is logged at most this often, in milliseconds. */
const repeatMs = 60_000;
const maxRemembered = 100;

interface MissingPermissionsOptions {
  clock: Clock;
  logger: Logger;
  /** Counts a request for which a permission is missing, by the resource's plural. */
  onMissing?: ((resource: string) => void) | undefined;
}

/** Reports forbidden requests of all clients, with the RBAC rule to add. */
export class MissingPermissions {
  readonly #options: MissingPermissionsOptions;
  readonly #loggedAtMs = new Map<string, number>();

  constructor(options: MissingPermissionsOptions) {
    this.#options = options;
  }

  /** Counts and logs it, unless admission rejected it, which no permission would change, or the caller reports it. */
  report(error: ForbiddenError): void {
    const { clock, logger, onMissing } = this.#options;
    const { resource, verb, namespace, subresource, optional = false } = error.request;
    if (error.isAdmission || optional === 'reported') return;
    if (!optional) onMissing?.(resource.plural);
    const key = [optional, resource.group, resource.plural, subresource].join(' ');
    const nowMs = clock.monotonicMs();
    const loggedAtMs = this.#loggedAtMs.get(key);
    if (loggedAtMs !== undefined && (optional || nowMs - loggedAtMs < repeatMs)) return;
    if (this.#loggedAtMs.size >= maxRemembered) this.#loggedAtMs.clear();
    this.#loggedAtMs.set(key, nowMs);
    const { group, plural } = resource;
    const where = { resource: plural, ...(group !== '' && { group }), ...(namespace !== undefined && { namespace }) };
    const fields = { ...where, verb, err: error, addRule: error.missingRule };
    if (optional) {
      logger.warn(fields, 'Not permitted to use a resource, continuing without it; the rule can be added to the role');
    } else {
      logger.error(fields, 'Not permitted to use a resource; add the rule to an RBAC role, no restart is then needed');
    }
  }
}

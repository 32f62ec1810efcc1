/**
 * Permission to change what another process may work on by now. A process that was paused, such as by a machine that sleeps, goes
 * on in the middle of what it did: it must notice that before it sends anything.
 */
import type { Clock } from './clock.ts';

export interface Permit {
  /** Whether it is certain at this moment. Covers what is sent before the next `await`. */
  readonly isValid: boolean;
  /**
   * Has it renewed. Resolves once that was done, with what was found meanwhile taken into account; check `isValid` again then.
   *
   * @throws when it cannot be had any more, and the signal's reason.
   */
  renewed(signal: AbortSignal | undefined): Promise<void>;
}

/** A moment on both clocks: the monotonic one may stand still while the machine sleeps, the other one may be set. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function momentOf(clock: Pick<Clock, 'monotonicMs' | 'wallMs'>): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** How much time has passed, by the clock that says more: a clock that was set back says nothing. */
export function passedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}

/** The permit was not valid any more when something was to be sent, which was not sent. */
export class NotPermittedError extends Error {
  override readonly name = 'NotPermittedError';

  constructor() {
    super('the request was not sent');
  }
}

/**
 * Sends something as soon as the permit is valid; in the usual case at once, before this function returns.
 *
 * @param send - where it has to wait before it sends, it calls `recheck` afterwards. That throws `NotPermittedError` if the permit is not
 * valid any more, which `send` must pass on: it is called again once the permit is valid.
 */
export async function whenPermitted<T>(
  permit: Permit | undefined,
  signal: AbortSignal | undefined,
  send: (recheck: () => void) => T | Promise<T>,
): Promise<T> {
  for (;;) {
    while (permit?.isValid === false) await permit.renewed(signal);
    let refusal: NotPermittedError | undefined;
    const recheck = (): void => {
      if (permit?.isValid !== false) return;
      refusal = new NotPermittedError();
      throw refusal;
    };
    try {
      return await send(recheck);
    } catch (error) {
      if (refusal === undefined || error !== refusal) throw error;
    }
  }
}

/** A permit after whose renewal something is checked again, because it may have changed during the pause. */
export function withRecheck(permit: Permit | undefined, recheck: () => void | Promise<void>): Permit | undefined {
  return (
    permit && {
      get isValid() {
        return permit.isValid;
      },
      renewed: async (signal) => {
        await permit.renewed(signal);
        await recheck();
      },
    }
  );
}

/** Valid while all are. */
export function allOf(permits: readonly Permit[]): Permit {
  return {
    get isValid() {
      return permits.every(({ isValid }) => isValid);
    },
    renewed: async (signal) => {
      for (const permit of permits) if (!permit.isValid) await permit.renewed(signal);
    },
  };
}

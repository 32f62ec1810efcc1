/** Whether somebody still waits for the check that a call belongs to. */
import { AsyncLocalStorage } from 'node:async_hooks';

const signals = new AsyncLocalStorage<AbortSignal | undefined>();

/** Runs a check. Once the signal aborts, `throwIfGivenUp` throws wherever the check has gone. */
export function underSignal<T>(signal: AbortSignal, run: () => T): T {
  return signals.run(signal, run);
}

/** Starts what outlives the check that needs it first. */
export function forAllChecks<T>(start: () => T): T {
  return signals.run(undefined, start);
}

/** @throws the reason when the check that this belongs to was given up. */
export function throwIfGivenUp(): void {
  signals.getStore()?.throwIfAborted();
}

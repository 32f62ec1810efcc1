import { untilAborted } from '../base/abort.ts';
import type { DriverCapabilities } from './driver-info.ts';
import type { Driver } from './driver.ts';

/**
 * Resolves once the driver has a capability: now, or when it reconnects as another version.
 *
 * @throws the signal's reason when it aborts first.
 */
export async function untilCapable(
  driver: Pick<Driver, 'capabilities' | 'onReconnected'>,
  isCapable: (capabilities: DriverCapabilities) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const check = (): void => {
    if (isCapable(driver.capabilities)) resolve(undefined);
  };
  using _back = driver.onReconnected(check);
  check();
  await untilAborted(promise, signal);
}

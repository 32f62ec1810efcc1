import type { Logger } from '../base/logger.ts';

/** Every character outside letters, digits and dashes becomes a dash; a last dash gets an `X`. */
export function sanitised(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '-X');
}

/**
 * Name of the Lease: the driver's, sanitised. Where that is no valid object name (upper case, which the API refuses) it
 * is lower-cased, with one warning.
 */
export function leaseName(driverName: string, logger: Logger): string {
  const name = sanitised(driverName);
  const valid = name.toLowerCase();
  if (valid !== name) {
    logger.warn(
      { driver: driverName, lease: valid },
      'The driver name gives no valid Lease name, a lower-case one is used',
    );
  }
  return valid;
}

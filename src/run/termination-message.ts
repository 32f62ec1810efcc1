import { closeSync, constants, openSync, writeSync } from 'node:fs';
import type { Logger } from '../base/logger.ts';

/** Where the kubelet reads why a container ended, unless the Pod names another file. */
const usualPath = '/dev/termination-log';

/**
 * Leaves a message for the Pod's status (Kubernetes page "Determine the Reason for Pod Failure"). Outside a Pod there is
 * no such file and nothing is written; any other failure is only logged. A repeat replaces the message.
 *
 * @param options.path - default `/dev/termination-log`.
 */
export function leaveTerminationMessage(message: string, options: { logger: Logger; path?: string }): void {
  const { logger, path = usualPath } = options;
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_TRUNC);
    try {
      writeSync(file, message);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    logger.error({ err: error, path }, 'The termination message could not be written');
  }
}

/** The driver that `csi-provisioner audit` asks. */
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Progress } from '../base/progress.ts';
import { textLogger } from '../base/text-logger.ts';
import { CannotReadError } from '../audit/cannot-read-error.ts';
import type { LookOptions } from '../audit/look.ts';
import { centralVolumeHome, nodeVolumeHome } from '../audit/volume-home.ts';
import { connectionProblem } from '../csi/connection-problem.ts';
import { csiTarget, socketPath } from '../csi/csi-address.ts';
import { Driver } from '../csi/driver.ts';
import type { Config } from './config.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/** How long the driver may take until it responds for the first time, in milliseconds. */
const maxConnectMs = 10_000;
/** Max size of a response: of a driver without pages that of its whole list, in bytes. */
const maxResponseBytes = 256 * 1024 * 1024;

/** What fails is part of the output; the log has what driver and API are asked, if `-v` wants it. */
export function auditLogger({ stderr }: Pick<SubcommandCall, 'stderr'>, { logging }: Config): Logger {
  const level = logging.verbosity >= 5 ? 'trace' : logging.verbosity >= 2 ? 'debug' : 'error';
  return textLogger({ level, write: (line) => stderr.write(line) });
}

/** Connects to the driver; dispose it at the end. @throws {CannotReadError} when it does not respond in time, or wrongly. */
export async function auditedDriver(
  { csiAddress: address, csiTimeoutMs: timeoutMs, nodeDeployment }: Config,
  options: { progress: Progress; logger: Logger; signal: AbortSignal; onGone: (error: Error) => void },
): Promise<Driver> {
  const { progress, logger, signal, onGone } = options;
  const patience = new AbortController();
  const timer = systemClock.after(maxConnectMs, () => patience.abort());
  progress.at(`Connecting to the driver on ${address}`);
  try {
    return await Driver.connect({
      address,
      timeoutMs,
      maxResponseBytes,
      askNodeInfo: nodeDeployment !== null,
      clock: systemClock,
      logger,
      onGone,
      signal: AbortSignal.any([signal, patience.signal]),
    });
  } catch (error) {
    const why = patience.signal.aborted
      ? `no response within ${maxConnectMs / 1000} s: ${await connectionProblem(socketPath(csiTarget(address)))}`
      : (error as Error).message;
    throw new CannotReadError(`the driver on ${address}: ${why}`, { cause: error });
  } finally {
    timer.cancel();
  }
}

/** Which volumes that driver has. */
export function homeIn({ nodeDeployment }: Config, { name: driverName, nodeInfo }: Driver): LookOptions['homeOf'] {
  const nodeName = nodeDeployment?.nodeName;
  if (nodeName === undefined || nodeInfo === undefined) return (volume) => centralVolumeHome(volume, driverName);
  return (volume) => nodeVolumeHome(volume, { driverName, nodeName, nodeInfo });
}

/** What a subcommand that takes the flags of the sidecar connects to with them: the cluster, and the driver. */
import { CannotReadError } from '../audit/audit-errors.ts';
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Progress } from '../base/progress.ts';
import { textLogger } from '../base/text-logger.ts';
import { connectionProblem, csiTarget, socketPath } from '../csi/csi-address.ts';
import { Driver } from '../csi/driver.ts';
import { type ClusterConnection, connectCluster, type ConnectionOptions } from './cluster-connection.ts';
import { buildConfig, type Config } from './config.ts';
import { meantWords, parseFlags } from './parse-flags.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/**
 * The configuration with which the sidecar would run for these arguments.
 *
 * @param options.words - how many arguments that are no flags the subcommand reads itself. Default 0.
 * @throws {ExitError} as the sidecar, and {RangeError} for a further word.
 */
export function sidecarConfig(
  { program, environment }: SubcommandCall,
  args: readonly string[],
  { words = 0 }: { words?: number } = {},
): Config {
  const parsed = parseFlags(program, args);
  if (parsed.kind === 'help') throw new RangeError('help is --help');
  const { values, given } = parsed;
  const unexpected = meantWords(args)[words];
  if (unexpected !== undefined) throw new RangeError(`unexpected argument ${JSON.stringify(unexpected)}`);
  return buildConfig({ argv0: program, values, given, environment });
}

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

/** `connectCluster` with the flags of the sidecar. @throws as it. */
export function connectAsSidecar(
  call: Pick<SubcommandCall, 'environment' | 'stderr'>,
  { config, context }: { config: Pick<Config, 'kubernetes'>; context: string | undefined },
  options: ConnectionOptions,
): ClusterConnection {
  const { kubeconfigFiles, masterUrl } = config.kubernetes;
  const flags = {
    context,
    ...(kubeconfigFiles.length > 0 && { kubeconfig: kubeconfigFiles }),
    ...(masterUrl !== '' && { master: masterUrl }),
  };
  return connectCluster(call, flags, options);
}

/** The connections of a subcommand: to the cluster, from a person's kubeconfig or from within a Pod, and to the driver. */
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CannotReadError } from '../audit/cannot-read-error.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { printable } from '../base/printable.ts';
import { eraseLine, type Progress } from '../base/progress.ts';
import { shortValue } from '../base/short-value.ts';
import { textLogger } from '../base/text-logger.ts';
import { connectionProblem } from '../csi/connection-problem.ts';
import { csiTarget, socketPath } from '../csi/csi-address.ts';
import { Driver } from '../csi/driver.ts';
import { durationText } from '../explain/time-text.ts';
import { ApiError } from '../kube/client/api-error.ts';
import { connect } from '../kube/client/connect.ts';
import type { RequestObservation, RequestPause } from '../kube/client/request.ts';
import type { Transport } from '../kube/client/transport.ts';
import { KubeConfigError } from '../kube/credentials/kube-config-error.ts';
import { contextNamespace } from '../kube/credentials/kube-config.ts';
import { listedFiles } from '../kube/credentials/kubeconfig-files.ts';
import { buildConfig, type Config } from './config.ts';
import { applyFeatureGates } from './feature-gates.ts';
import { checkLogging } from './logging.ts';
import { meantWords, parseFlags } from './parse-flags.ts';
import { version } from './program.ts';
import { type SubcommandCall, SubcommandError, type TextOutput } from './subcommand-call.ts';

/** The flags with which a subcommand finds its cluster. */
export interface ConnectionFlags {
  /** One file, or several that are merged. */
  kubeconfig?: string | readonly string[] | undefined;
  context?: string | undefined;
  /** URL of the API server: replaces that of the kubeconfig; alone it is used without credentials. */
  master?: string | undefined;
}

interface ConnectionOptions {
  /** The exit code when there is no usable configuration. */
  failureCode: number;
  /** Called after each request. */
  onRequest?: (observation: RequestObservation) => void;
}

/** A connected cluster; dispose the transport at the end. */
interface ClusterConnection {
  transport: Transport;
  /** The namespace that the user's context names, or the Pod's, else `default`. */
  namespace: string;
}

/**
 * Connects to the cluster as kubectl would: `--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`, else the service
 * account of the Pod. Nothing is sent yet.
 *
 * @throws {SubcommandError} when there is none.
 */
export function connectCluster(
  call: Pick<SubcommandCall, 'environment' | 'stderr'>,
  { kubeconfig, context, master }: ConnectionFlags,
  { failureCode, onRequest }: ConnectionOptions,
): ClusterConnection {
  const { environment } = call;
  const usual = master === undefined ? usualKubeconfig(environment) : undefined;
  const source = { kubeconfig: kubeconfig ?? usual, context, master, environment };
  try {
    return {
      namespace: contextNamespace(source) ?? 'default',
      transport: connect({
        ...source,
        onRequest,
        onPause: pauseNotice(call, systemClock),
        userAgent: `csi-provisioner/${version} (${os.platform()}/${os.arch()})`,
        logger: textLogger({ level: 'error', write: (line) => call.stderr.write(line) }),
      }),
    };
  } catch (error) {
    if (!(error instanceof KubeConfigError)) throw error;
    throw new SubcommandError(error.withCure().message, { exitCode: failureCode, cause: error });
  }
}

/** The same with the flags of the sidecar. @throws as `connectCluster`. */
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

/** Undefined where there is none, which leaves the service account of the Pod. */
function usualKubeconfig(environment: SubcommandCall['environment']): string | readonly string[] | undefined {
  const listed = listedFiles(environment['KUBECONFIG']);
  if (listed.length > 0) return listed;
  const home = homeOf(environment);
  const usual = home && path.join(home, '.kube', 'config');
  return usual !== undefined && existsSync(usual) ? usual : undefined;
}

function homeOf(environment: SubcommandCall['environment']): string | undefined {
  const named = environment['HOME'] ?? '';
  if (named !== '') return named;
  try {
    return os.homedir() || undefined;
  } catch {
    return undefined; // no entry in /etc/passwd, as in containers whose platform assigns the user id
  }
}

/** A wait is worth a line when it takes this long, and each further one when it ends this much later; in milliseconds. */
const worthMs = 3000;

/**
 * A line on standard error when the API server keeps a person waiting.
 *
 * @returns what is to be called before each pause. Of requests that wait at the same time one is named.
 */
function pauseNotice({ stderr }: { stderr: TextOutput }, clock: Pick<Clock, 'wallMs'>): (pause: RequestPause) => void {
  let begunMs = 0;
  let lastUntilMs = -Infinity;
  let announcedMs = -Infinity;
  return ({ error, pauseMs, verb, resource }) => {
    const nowMs = clock.wallMs();
    if (nowMs - lastUntilMs > worthMs) begunMs = nowMs; // it responded in between
    const untilMs = nowMs + pauseMs;
    lastUntilMs = Math.max(lastUntilMs, untilMs);
    if (untilMs - begunMs < worthMs || untilMs - announcedMs < worthMs) return;
    announcedMs = untilMs;
    const time = new Date(untilMs).toISOString().slice(11, 19);
    const what = `${verb} ${resource} is sent again at ${time} UTC, in ${durationText(pauseMs)}`;
    stderr.write(`${stderr.isTTY === true ? eraseLine : ''}${reasonOf(error)}; ${what}\n`);
  };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ApiError)) return `The API server cannot be reached (${foreign((error as Error).message)})`;
  const { code, retryAfterS, message } = error;
  return `The API server responds ${code} (${foreign(message)}) and asks for a pause of ${retryAfterS} s`;
}

/** In one line: a proxy may send a page of HTML. */
function foreign(text: string): string {
  return printable(shortValue(text));
}

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
  const { gates } = applyFeatureGates(values['feature-gates']);
  return buildConfig({
    argv0: program,
    values,
    given,
    environment,
    logging: checkLogging(values),
    featureGates: gates,
  });
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

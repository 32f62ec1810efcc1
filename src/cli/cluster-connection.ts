/** The connection of a subcommand to the cluster, from a person's kubeconfig or from within a Pod. */
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import { printable } from '../base/printable.ts';
import { eraseLine } from '../base/progress.ts';
import { shortValue } from '../base/short-value.ts';
import { textLogger } from '../base/text-logger.ts';
import { durationText } from '../explain/texts.ts';
import { ApiError } from '../kube/client/api-error.ts';
import { connect } from '../kube/client/connect.ts';
import type { RequestObservation, RequestPause } from '../kube/client/request.ts';
import type { Transport } from '../kube/client/transport.ts';
import { KubeConfigError, listedFiles } from '../kube/credentials/kubeconfig-files.ts';
import { contextNamespace } from '../kube/credentials/kube-config.ts';
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

export interface ConnectionOptions {
  /** The exit code when there is no usable configuration. */
  failureCode: number;
  /** As of `connect`. */
  maxConnections?: number;
  /** Called after each request. */
  onRequest?: (observation: RequestObservation) => void;
}

/** A connected cluster; dispose the transport at the end. */
export interface ClusterConnection {
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
  { failureCode, maxConnections, onRequest }: ConnectionOptions,
): ClusterConnection {
  const { environment } = call;
  const usual = master === undefined ? usualKubeconfig(environment) : undefined;
  const source = { kubeconfig: kubeconfig ?? usual, context, master, environment };
  try {
    return {
      namespace: contextNamespace(source) ?? 'default',
      transport: connect({
        ...source,
        maxConnections,
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

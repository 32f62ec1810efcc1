/** The connection of a subcommand: from a person's kubeconfig, or from within a Pod. */
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../base/clock.ts';
import { textLogger } from '../base/text-logger.ts';
import { connect } from '../kube/client/connect.ts';
import { KubeConfigError } from '../kube/credentials/kube-config-error.ts';
import { contextNamespace } from '../kube/credentials/kube-config.ts';
import { listedFiles } from '../kube/credentials/kubeconfig-files.ts';
import type { RequestObservation } from '../kube/client/request.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { Config } from './config.ts';
import { pauseNotice } from './pause-notice.ts';
import { type SubcommandCall, SubcommandError } from './subcommand-call.ts';
import { version } from './version.ts';

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

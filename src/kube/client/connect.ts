import os from 'node:os';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { warningLogger } from '../../base/text-logger.ts';
import { Credentials } from '../credentials/credentials.ts';
import { loadKubeConfig } from '../credentials/kube-config.ts';
import { listedFiles } from '../credentials/kubeconfig-files.ts';
import type { RequestObservation, RequestPause } from './request.ts';
import { TokenBucket } from './token-bucket.ts';
import { Transport } from './transport.ts';

export interface ConnectOptions {
  /**
   * Path of a kubeconfig file, or of several that are merged as kubectl merges them. Default: those that `KUBECONFIG` lists,
   * of which some may be missing.
   */
  kubeconfig?: string | readonly string[] | undefined;
  /** Name of a context in there. Default: the current one. */
  context?: string | undefined;
  /** URL of the API server: replaces the one in the kubeconfig; without a kubeconfig no credentials are sent. */
  master?: string | undefined;
  /** Client-side limit: requests per second, and the burst. Default: none. Watches do not count. */
  rateLimit?: { perSecond: number; burst: number } | undefined;
  /** Max connections for single requests; further requests wait for one. Default: no limit. Lists that are streamed, and watches, do not count. */
  maxConnections?: number | undefined;
  /** The header `User-Agent`. Default `csi-provisioner-library (OS/ARCH)`. */
  userAgent?: string | undefined;
  /** Called after each request, also a failed one. */
  onRequest?: ((observation: RequestObservation) => void) | undefined;
  /** Called before each pause after which a request is sent again, as the server asks for that or the connection broke. */
  onPause?: ((pause: RequestPause) => void) | undefined;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger | undefined;
  /** The process environment: `KUBECONFIG`, the variables of a pod, proxies, and what credential plugins inherit. */
  environment: Record<string, string | undefined>;
  /** Default: the machine's own time. */
  clock?: Clock | undefined;
}

/**
 * Finds the API server and the credentials for it: a kubeconfig file, else a bare server URL, else the pod's service account
 * (Kubernetes page "Accessing the Kubernetes API from a Pod"). Credentials are renewed as they change. Nothing is sent
 * yet; dispose the transport at the end.
 *
 * @throws {KubeConfigError} when nothing usable is found, or a file of it cannot be read.
 */
export function connect(options: ConnectOptions): Transport {
  const { environment, context, master, rateLimit, maxConnections, logger = warningLogger } = options;
  const { clock = systemClock } = options;
  const kubeconfig = options.kubeconfig ?? listedFiles(environment['KUBECONFIG']);
  return new Transport({
    credentials: new Credentials({
      load: () => loadKubeConfig({ kubeconfig, context, master, environment }),
      clock,
      logger,
    }),
    userAgent: options.userAgent ?? `csi-provisioner-library (${os.platform()}/${os.arch()})`,
    rateLimit: rateLimit && new TokenBucket({ qps: rateLimit.perSecond, burst: rateLimit.burst, clock }),
    maxConnections,
    onRequest: options.onRequest,
    onPause: options.onPause,
    clock,
    logger,
  });
}

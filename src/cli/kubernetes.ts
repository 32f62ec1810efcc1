import os from 'node:os';
import path from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { trustSystemCertificates } from '../base/system-trust.ts';
import { Credentials } from '../kube/credentials/credentials.ts';
import { loadKubeConfig } from '../kube/credentials/kube-config.ts';
import { KubeConfigError } from '../kube/credentials/kubeconfig-files.ts';
import type { MissingPermissions } from '../kube/client/missing-permissions.ts';
import { TokenBucket } from '../kube/client/token-bucket.ts';
import { Transport, type TransportOptions } from '../kube/client/transport.ts';
import type { Config, KubernetesConfig, RateLimit } from './config.ts';
import { fatalExit } from '../run/exit.ts';
import { version } from './program.ts';

/** What the API server records as the author of the sidecar's writes. */
export const fieldManager = 'csi-provisioner';

interface KubernetesOptions {
  config: KubernetesConfig;
  argv0: string;
  environment: Record<string, string | undefined>;
  clock: Clock;
  logger: Logger;
}

/** The API server and the credentials for it. @throws {ExitError} with code 255 when nothing usable is configured. */
export function kubernetesCredentials({ config, environment, clock, logger }: KubernetesOptions): Credentials {
  if (config.kubeconfigFromEnvironment) logger.info({}, 'Found KUBECONFIG environment variable set, using that..');
  const outside = config.kubeconfigFiles.length > 0 || config.masterUrl !== '';
  logger.info(
    {},
    outside
      ? 'Either master or kubeconfig specified. building kube config from that..'
      : 'Building kube configs for running in cluster...',
  );
  const source = { kubeconfig: config.kubeconfigFiles, master: config.masterUrl, environment };
  try {
    const credentials = new Credentials({ load: () => loadKubeConfig(source), clock, logger });
    if (credentials.needsDefaultTrust) trustSystemCertificates();
    return credentials;
  } catch (error) {
    if (!(error instanceof KubeConfigError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
    throw fatalExit(`Failed to create config: ${(error as Error).message}`, error);
  }
}

/** Connections for requests from outside the counted workers: saving volumes, events, secrets, optional APIs. */
const otherConnections = 24;

/** A connection for each worker that may have a request under way, so that none waits for another's. */
export function connectionsFor({ provisioning, capacity, nodeDeployment }: Config): number {
  const { workerThreads, cloningProtectionThreads } = provisioning;
  const queues = nodeDeployment === null ? 2 : 3; // claims, volumes, and claims that nodes agree on
  return queues * workerThreads + cloningProtectionThreads + (capacity?.threads ?? 0) + otherConnections;
}

/**
 * A transport of its own rate limit: `null` means none.
 *
 * @param component - appended to the user agent.
 * @param maxConnections - as of `TransportOptions`.
 */
export function kubernetesTransport(
  options: KubernetesOptions & {
    credentials: Credentials;
    missingPermissions: MissingPermissions;
    rateLimit: RateLimit | null;
    component?: string;
    maxConnections?: number;
    onRequest?: TransportOptions['onRequest'];
  },
): Transport {
  const { credentials, missingPermissions, rateLimit, clock, logger, argv0, component, maxConnections, onRequest } =
    options;
  const program = `${path.basename(argv0, '.ts')}/${version} (${os.platform()}/${os.arch()}) kubernetes/unknown`;
  return new Transport({
    credentials,
    missingPermissions,
    clock,
    logger,
    maxConnections,
    onRequest,
    userAgent: component === undefined ? program : `${program}/${component}`,
    rateLimit:
      rateLimit === null ? undefined : new TokenBucket({ qps: rateLimit.perSecond, burst: rateLimit.burst, clock }),
  });
}

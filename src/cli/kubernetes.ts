import os from 'node:os';
import path from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { Credentials } from '../kube/credentials.ts';
import { loadKubeConfig } from '../kube/kube-config.ts';
import { KubeConfigError } from '../kube/kube-config-error.ts';
import type { MissingRights } from '../kube/missing-rights.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import { Transport } from '../kube/transport.ts';
import type { KubernetesConfig, RateLimit } from './config.ts';
import { fatalExit } from './exit.ts';
import { version } from './version.ts';

export interface KubernetesOptions {
  config: KubernetesConfig;
  argv0: string;
  environment: Record<string, string | undefined>;
  clock: Clock;
  logger: Logger;
}

/** Where the API server is and who we are there. @throws {ExitError} with code 255 when nothing usable is configured. */
export function kubernetesCredentials({ config, environment, clock, logger }: KubernetesOptions): Credentials {
  if (config.kubeconfigFromEnvironment) logger.info({}, 'Found KUBECONFIG environment variable set, using that..');
  const outside = config.kubeconfigPath !== '' || config.masterUrl !== '';
  logger.info(
    {},
    outside
      ? 'Either master or kubeconfig specified. building kube config from that..'
      : 'Building kube configs for running in cluster...',
  );
  const source = { kubeconfig: config.kubeconfigPath, master: config.masterUrl, environment };
  try {
    return new Credentials({ load: () => loadKubeConfig(source), clock, logger });
  } catch (error) {
    if (!(error instanceof KubeConfigError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
    throw fatalExit(`Failed to create config: ${(error as Error).message}`, error);
  }
}

/**
 * A transport of its own rate limit: `null` means none.
 *
 * @param component - appended to the user agent.
 */
export function kubernetesTransport(
  options: KubernetesOptions & {
    credentials: Credentials;
    missingRights: MissingRights;
    rateLimit: RateLimit | null;
    component?: string;
  },
): Transport {
  const { credentials, missingRights, rateLimit, clock, logger, argv0, component } = options;
  const program = `${path.basename(argv0, '.ts')}/${version} (${os.platform()}/${os.arch()}) kubernetes/unknown`;
  return new Transport({
    credentials,
    missingRights,
    clock,
    logger,
    userAgent: component === undefined ? program : `${program}/${component}`,
    rateLimit:
      rateLimit === null ? undefined : new TokenBucket({ qps: rateLimit.perSecond, burst: rateLimit.burst, clock }),
  });
}

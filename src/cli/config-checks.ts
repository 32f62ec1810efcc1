import { formatGoDuration, nanosecondsOf } from '../base/go-duration.ts';
import { parseListenAddress } from '../diagnostics/listen-address.ts';
import { checkPaths } from '../diagnostics/http-paths.ts';
import { httpFailure } from '../run/endpoint.ts';
import type { Config, HttpConfig, LeaderElectionConfig } from './config.ts';
import { panicExit } from '../run/exit.ts';
import type { Notice } from './feature-gates.ts';

/** How far a wait between renewals may be stretched at random. */
const jitterFactor = 1.2;
/** A shorter interval of audits is hardly intended, in milliseconds. */
const minAuditIntervalMs = 60_000;

/**
 * Checks what the values of a configuration mean.
 *
 * @returns warnings about values that are accepted but make every volume fail.
 * @throws {ExitError} with the code the Go sidecar would end with.
 */
export function checkConfig(config: Config): Notice[] {
  if (config.http !== null) {
    checkHttpAddress(config.http);
    checkMetricsPath(config.http);
  }
  if (config.leaderElection !== null) checkElectionTimings(config.leaderElection);
  return configWarnings(config);
}

/**
 * Refuses timings with which a leader could lose its lease by design.
 *
 * @throws {ExitError} code 2.
 * @see Kubernetes, `client-go/tools/leaderelection`, `NewLeaderElector`.
 */
function checkElectionTimings(election: LeaderElectionConfig): void {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = election;
  const lease = `--leader-election-lease-duration=${shown(leaseDurationMs)}`;
  const renew = `--leader-election-renew-deadline=${shown(renewDeadlineMs)}`;
  const retry = `--leader-election-retry-period=${shown(retryPeriodMs)}`;
  if (leaseDurationMs <= renewDeadlineMs) {
    throw panicExit(`leaseDuration must be greater than renewDeadline (${lease}, ${renew})`);
  }
  if (renewDeadlineMs <= retryPeriodMs * jitterFactor) {
    throw panicExit(`renewDeadline must be greater than retryPeriod*JitterFactor (${renew}, ${retry}, factor 1.2)`);
  }
  if (leaseDurationMs < 1000) {
    throw panicExit(`leaseDuration must be at least 1s, a Lease counts whole seconds (${lease})`);
  }
  if (renewDeadlineMs <= 0) throw panicExit(`renewDeadline must be greater than zero (${renew})`);
  if (retryPeriodMs <= 0) throw panicExit(`retryPeriod must be greater than zero (${retry})`);
}

/** @throws {ExitError} code 255 for an address that no server can listen on. */
function checkHttpAddress(http: HttpConfig): void {
  try {
    parseListenAddress(http.address);
  } catch (error) {
    throw httpFailure(http, error);
  }
}

/** @throws {ExitError} code 2 for a path that Go's server refuses, or that another handler has. */
function checkMetricsPath(http: HttpConfig): void {
  try {
    checkPaths(http);
  } catch (error) {
    throw panicExit((error as Error).message, error);
  }
}

/** Warnings about values that the Go sidecar accepts too, although nothing can work with them. */
export function configWarnings(config: Config): Notice[] {
  const { volumeNamePrefix, volumeNameUuidLength, workerThreads } = config.provisioning;
  const warnings: [boolean, object, string][] = [
    [
      config.csiTimeoutMs <= 0,
      { flag: '--timeout' },
      'Every call to the driver will fail: the timeout is not positive',
    ],
    [volumeNamePrefix === '', { flag: '--volume-name-prefix' }, 'No volume can be named: the prefix is empty'],
    [
      volumeNameUuidLength < -1 || volumeNameUuidLength > 32,
      { flag: '--volume-name-uuid-length', value: volumeNameUuidLength },
      'No volume can be named: the length must be 0 to 32, or -1',
    ],
    [workerThreads === 0, { flag: '--worker-threads' }, 'Nothing will be provisioned or deleted: there are no workers'],
    [
      config.capacity?.threads === 0,
      { flag: '--capacity-threads' },
      'No capacity will be published: there are no workers',
    ],
    [
      config.auditIntervalMs !== null && config.auditIntervalMs < minAuditIntervalMs,
      { flag: '--audit-interval' },
      'The driver will be asked for all its volumes more than once in a minute',
    ],
    [
      config.nodeDeployment !== null && config.leaderElection !== null,
      { flag: '--leader-election' },
      'Leader election is left out: in node deployment every instance works for its own node',
    ],
  ];
  return warnings.filter(([applies]) => applies).map(([, fields, message]) => ({ level: 'warn', fields, message }));
}

function shown(milliseconds: number): string {
  return formatGoDuration(nanosecondsOf(milliseconds));
}

/** What `runProvisioner` is given. */
import type { MetricRegistry } from '../base/metrics.ts';
import {
  aFunction,
  checkOptions,
  flag,
  having,
  milliseconds,
  oneOf,
  type OptionRule,
  required,
  text,
} from '../base/option-rules.ts';
import type { ConnectOptions } from '../kube/client/connect.ts';
import {
  checkOptionValues,
  checkProvisioner,
  checkProvisionerName,
  type ProvisionControllerOptions,
} from '../provision/provision-controller-options.ts';
import type { ProvisionController } from '../provision/provision-controller.ts';
import type { Provisioner } from '../provision/provisioner.ts';
import type { Recoverable } from '../provision/recoverable.ts';
import type { ElectionSettings } from './election.ts';
import type { HttpOptions } from './endpoint.ts';
import type { HealthCheck } from './health.ts';
import type { ProvisionerParts } from './provisioner-parts.ts';
import { minTotalMs, type SignalSource } from './shutdown.ts';

/** A provisioner and the settings of its process, besides the options of `ProvisionController`. */
export interface RunProvisionerOptions extends Omit<
  ProvisionControllerOptions,
  | 'provisioner'
  | 'transport'
  | 'informers'
  | 'recorder'
  | 'metrics'
  | 'queueMetrics'
  | 'intentJournal'
  | 'journalMetrics'
  | 'permit'
> {
  /** The provisioner, or a function that creates it once this process leads, before the first claim is served. */
  provisioner:
    | Provisioner
    | Recoverable<object>
    | ((parts: ProvisionerParts) => Provisioner | Recoverable<object> | Promise<Provisioner | Recoverable<object>>);
  /** Where the API server is. Default: `KUBECONFIG`, else the service account of the pod. */
  connection?: Omit<ConnectOptions, 'environment' | 'logger' | 'clock'>;
  /**
   * Any number of instances may run, also on one machine, of which one works: it holds a Lease that is named after the
   * provisioner, in the namespace of the pod. True: with the times of Kubernetes' own controllers. Default: no election.
   */
  leaderElection?: boolean | ElectionSettings;
  /**
   * Where the volumes of a `Recoverable` provisioner are recorded before they are created: in annotations of Leases, which are
   * named `<Lease of the election>-journal-<n>` and in its namespace. Needs get, create and update there. Default `lease`;
   * `off` where the election has to do without Leases.
   */
  intentJournal?: 'lease' | 'off';
  /**
   * Names what only one process can use at a time, such as a disk; other processes of the same provisioner may run with
   * other disks. Without leader election, records of an earlier process of this name are then adopted at once, and not only once
   * it has been silent for half a minute. Default: nothing is known of earlier processes.
   */
  soleInstance?: string | undefined;
  /**
   * Serves metrics (`/metrics`, or `metricsPath`), liveness (`/healthz`) and readiness (`/readyz`), such as with
   * `{ address: ':8080' }`; profiles only with `profiles: true`. Default: no endpoint.
   */
  http?: Pick<HttpOptions, 'address'> & Partial<HttpOptions>;
  /**
   * Checks of your own behind `/healthz` and `/readyz`, beside those of this process: each gives what is wrong, or undefined, and
   * must not wait. A failed `live` check has Kubernetes restart the container. Default: none.
   */
  checks?: { readonly live?: HealthCheck; readonly ready?: HealthCheck };
  /** Where the metrics are, also those of your own. Default: a registry of this provisioner's. */
  registry?: MetricRegistry;
  /** Called once before the controller runs, for example to keep it for `wakeVolume` and `retryFailed`. */
  onController?: (controller: ProvisionController) => void;
  /**
   * Max duration of a shutdown, in milliseconds, at least 25,000: what is under way is aborted 4 s before its end, and
   * the rest is for the last events and the Lease. The `terminationGracePeriodSeconds` of the Pod must be 5 s longer.
   * Default 25,000.
   */
  drainMs?: number;
  /** The process environment. Default: that of this process. */
  environment?: Record<string, string | undefined>;
  /** Default: those of this process. A second one ends it at once with exit code 1. */
  signals?: SignalSource;
}

type OwnName = Exclude<keyof RunProvisionerOptions, Exclude<keyof ProvisionControllerOptions, 'intentJournal'>>;

const election: OptionRule = {
  allowed: 'true, false or an object with settings',
  accepts: (value) => flag.accepts(value) || having().accepts(value),
};

/** A rule for each option that the controller does not have, or has with another meaning. */
const rules: Readonly<Record<OwnName, OptionRule>> = {
  connection: having(),
  leaderElection: election,
  intentJournal: oneOf('lease', 'off'),
  soleInstance: text,
  http: having(),
  checks: having(),
  registry: having('registerMetric', 'metrics'),
  onController: aFunction,
  drainMs: milliseconds(minTotalMs),
  environment: having(),
  signals: having('on', 'off'),
};

const electionRules: { readonly [Name in keyof Required<ElectionSettings>]: OptionRule | undefined } = {
  namespace: { allowed: 'a string', accepts: (value) => typeof value === 'string' },
  lockName: text,
  endpointsLock: flag,
  labels: having(),
  leaseDurationMs: milliseconds(1000),
  renewDeadlineMs: milliseconds(1),
  retryPeriodMs: milliseconds(1),
};

/**
 * Unknown names are ignored. A provisioner that a function returns is checked once this process leads.
 *
 * @throws {TypeError} for the first option that cannot work: names it, and says why.
 */
export function checkRunOptions(options: RunProvisionerOptions): void {
  const { provisioner, leaderElection, http, checks, intentJournal: _, ...controllerOptions } = options;
  checkProvisionerName(options.provisionerName);
  if (typeof provisioner !== 'function') checkProvisioner(provisioner);
  checkOptionValues(controllerOptions);
  checkOptions(options, rules);
  if (typeof leaderElection === 'object') checkOptions(leaderElection, electionRules, 'leaderElection.');
  if (http !== undefined) checkOptions(http, { address: required(text) }, 'http.');
  if (checks !== undefined) checkOptions(checks, { live: aFunction, ready: aFunction }, 'checks.');
}

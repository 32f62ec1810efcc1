/** Checks of the options of a provisioner's process. A provisioner that a function returns is checked once this process leads. */
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
import { checkOptionValues } from '../provision/check-options.ts';
import { checkProvisioner, checkProvisionerName } from '../provision/check-provisioner.ts';
import type { ProvisionControllerOptions } from '../provision/provision-controller-options.ts';
import type { ElectionSettings } from './election.ts';
import type { RunProvisionerOptions } from './run-provisioner-options.ts';
import { minTotalMs } from './shutdown.ts';

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

/** Unknown names are ignored. @throws {TypeError} for the first option that cannot work: names it, and says why. */
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

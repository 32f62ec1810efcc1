/** Checks of the options of a controller, before it does anything. */
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
  texts,
  wholeNumber,
} from '../base/option-rules.ts';
import { maxFieldManagerLength } from '../kube/client/kube-client.ts';
import { checkProvisioner, checkProvisionerName } from './check-provisioner.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';

const noLimit = ' (0: no limit)';

const transport = having('stream');
const permit: OptionRule = {
  allowed: 'an object with a boolean isValid and a method renewed',
  accepts: (value) => having('renewed').accepts(value) && flag.accepts((value as { isValid?: unknown }).isValid),
};
const limiter = having('when', 'forget', 'failures');

const fieldManager: OptionRule = {
  allowed: `a string of 1 to ${maxFieldManagerLength} characters`,
  accepts: (value) => text.accepts(value) && (value as string).length <= maxFieldManagerLength,
};

/** A rule for each option; undefined: not checked here. */
const rules: { readonly [Name in keyof Required<ProvisionControllerOptions>]: OptionRule | undefined } = {
  provisionerName: text,
  additionalProvisionerNames: texts,
  provisioner: having(),
  transport,
  observer: having(),
  fieldManager,
  recorder: having('event'),
  informers: having(),
  volumeFields: undefined,
  workers: wholeNumber(1),
  limiter,
  failedProvisionThreshold: wholeNumber(0, ' (0: never give up)'),
  failedDeleteThreshold: wholeNumber(0, ' (0: never give up)'),
  provisionTimeoutMs: milliseconds(0, noLimit),
  deletionTimeoutMs: milliseconds(0, noLimit),
  saveLimiter: limiter,
  intentJournal: having('open', 'run', 'put', 'remove', 'flush'),
  permit,
  maxCallMs: milliseconds(1),
  journalMetrics: having(),
  addFinalizer: flag,
  volumeName: aFunction,
  resyncMs: milliseconds(1),
  metrics: having(),
  queueMetrics: aFunction,
  meaningOf: aFunction,
  keepLastErrors: oneOf(true, false, 'short'),
  tracer: having(),
  clock: having('wallMs', 'monotonicMs', 'sleep', 'after'),
  logger: having('error', 'warn', 'info', 'debug', 'trace', 'child'),
  freezeCache: flag,
};

/** Unknown names are ignored. @throws {TypeError} for the first option that cannot work: names it, and says why. */
export function checkControllerOptions(options: ProvisionControllerOptions): void {
  checkProvisionerName(options.provisionerName);
  checkProvisioner(options.provisioner);
  checkOptionValues(options);
  checkOptions(options, { transport: required(transport) });
  if (options.informers !== undefined && options.volumeFields !== undefined) {
    throw new TypeError('volumeFields has no effect on informers that exist already: pass it to provisionInformers');
  }
}

/** The same for those options that are given. @throws as `checkControllerOptions`. */
export function checkOptionValues(options: Partial<ProvisionControllerOptions>): void {
  checkOptions(options, rules);
}

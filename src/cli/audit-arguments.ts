/** The arguments of `csi-provisioner audit`: a few of its own, and those of the sidecar. */
import { Option } from 'commander';
import { nobodyKeepsIt } from '../audit/deletable-record.ts';
import type { SecretReference } from '../provision/objects.ts';
import type { Config } from './config.ts';
import { durationOf, namespacedNameOf, outputOf, readValues } from './argument-values.ts';
import { readArguments, type SubcommandCall, subcommandParser } from './subcommand-call.ts';
import { sidecarConfig } from './sidecar-config.ts';

export interface AuditArguments {
  /** As the sidecar would run. */
  config: Config;
  context: string | undefined;
  /** The kubectl plugin runs this in the Pod: the flags with which it was called itself, as its user has to repeat them. */
  plugin: readonly string[] | undefined;
  secondLookMs: number;
  output: 'table' | 'json';
  /** Ids to be deleted. */
  ids: readonly string[];
  /** Nobody is asked. */
  isAgreed: boolean;
  /** The operator knows that nobody keeps the one volume of `ids`. */
  mayBeUnproved: boolean;
  /** In place of a volume's Secret that is gone. */
  secret: SecretReference | undefined;
}

interface OwnFlags {
  secondLook: string;
  output: string;
  context?: string;
  pluginFlag?: string[];
  plugin?: boolean;
  delete?: string[];
  yes?: boolean;
  nobodyKeepsIt?: boolean;
  secret?: string;
}

const notes = `
All flags of the sidecar are accepted as well. These have an effect: --csi-address, --timeout,
--kubeconfig, --master, --intent-journal, --leader-election-namespace, --node-deployment with the
variable NODE_NAME, and -v.
The others have no effect: the arguments of the sidecar can be copied.

Exit codes: 0 nothing needs attention; 1 wrong arguments, or a volume that must not be deleted;
2 volumes are lost or leaked, or records stuck; 3 not everything could be checked.`;

/**
 * Reads the arguments.
 *
 * @returns undefined when help was asked for and printed.
 * @throws {SubcommandError} for arguments that cannot be understood.
 */
export function auditArguments(call: SubcommandCall, { usageCode }: { usageCode: number }): AuditArguments | undefined {
  const parser = subcommandParser(call)
    .description(
      "Compares the driver's volumes with PersistentVolumes and the intent journal. Changes nothing by itself.",
    )
    .option('--second-look <duration>', 'pause before findings are checked a second time; 0: no second look', '1m')
    .option('-o, --output <format>', 'table or json', 'table')
    .option('--delete <id...>', 'delete these volumes; stuck records must name them')
    .option(
      `--${nobodyKeepsIt}`,
      'delete the one volume of --delete also if its record is stuck as unproved: you know that nobody keeps it on purpose',
    )
    .option('--secret <namespace/name>', 'for --delete: in place of a Secret that is gone')
    .option('--yes', 'delete without confirmation')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addOption(new Option('--plugin').hideHelp())
    .addOption(new Option('--plugin-flag <flag>').hideHelp().argParser(listed).default([]))
    .addHelpText('after', notes)
    .allowUnknownOption()
    .allowExcessArguments();
  if (!readArguments(parser, call, { usageCode })) return undefined;
  const flags = parser.opts<OwnFlags>();
  return readValues(call, { usageCode }, () => ({
    config: sidecarConfig(call, parser.args),
    context: flags.context,
    plugin: flags.plugin === true ? (flags.pluginFlag ?? []) : undefined,
    secondLookMs: durationOf('--second-look', flags.secondLook),
    output: outputOf(flags.output),
    ids: idsOf(flags.delete),
    isAgreed: flags.yes ?? false,
    mayBeUnproved: unprovedOf(flags),
    secret: flags.secret === undefined ? undefined : namespacedNameOf('--secret', flags.secret),
  }));
}

function listed(text: string, earlier: readonly string[]): string[] {
  return [...earlier, text];
}

/** @throws {RangeError} */
function idsOf(texts: readonly string[] = []): string[] {
  if (texts.includes('')) throw new RangeError('--delete must be followed by the ids of volumes, got an empty one');
  return [...new Set(texts)];
}

/** @throws {RangeError} */
function unprovedOf({ nobodyKeepsIt: isKnown = false, delete: ids = [] }: OwnFlags): boolean {
  if (!isKnown || new Set(ids).size === 1) return isKnown;
  throw new RangeError(`--${nobodyKeepsIt} takes one volume of --delete at a time, got ${new Set(ids).size}`);
}

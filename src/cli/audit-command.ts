/** The arguments of `csi-provisioner audit`: a few of its own, and those of the sidecar. */
import { Option } from 'commander';
import {
  auditCodes,
  auditJson,
  auditText,
  type Deletion,
  deletionText,
  exitCodeOf,
  type ReportContext,
} from '../audit/audit-report.ts';
import { audit, type Audit, type AuditOptions } from '../audit/audit.ts';
import { CannotReadError, NotDeletableError } from '../audit/audit-errors.ts';
import { deletableRecord, deleteLeaked, nobodyKeepsIt } from '../audit/delete-leaked.ts';
import type { IndexedRecord } from '../audit/strangers.ts';
import { systemClock } from '../base/clock.ts';
import { printable } from '../base/printable.ts';
import { ApiError, TransportError } from '../kube/client/api-error.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import { commandFor, homeIn } from './features/audit-feature.ts';
import { auditedDriver, auditLogger, connectAsSidecar, sidecarConfig } from './sidecar-connections.ts';
import { fieldManager } from './kubernetes.ts';
import { journalObjects } from './features/journal-features.ts';
import {
  durationOf,
  isAgreedTo,
  namespacedNameOf,
  outputOf,
  readArguments,
  readValues,
  stderrProgress,
  type SubcommandCall,
  SubcommandError,
  subcommandParser,
  usageError,
} from './subcommand-call.ts';

export type AuditArguments = NonNullable<ReturnType<typeof auditArguments>>;

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
export function auditArguments(call: SubcommandCall, { usageCode }: { usageCode: number }) {
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
    /** As the sidecar would run. */
    config: sidecarConfig(call, parser.args),
    context: flags.context,
    /** The kubectl plugin runs this in the Pod: the flags with which it was called itself, as its user has to repeat them. */
    plugin: flags.plugin === true ? (flags.pluginFlag ?? []) : undefined,
    secondLookMs: durationOf('--second-look', flags.secondLook),
    output: outputOf(flags.output),
    /** To be deleted. */
    ids: idsOf(flags.delete),
    isAgreed: flags.yes ?? false,
    /** The operator knows that nobody keeps the one volume of `ids`. */
    mayBeUnproved: unprovedOf(flags),
    /** In place of a volume's Secret that is gone. */
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

/** Compares, and deletes what `--delete` names. Without that it changes nothing, and is safe to repeat. */
export async function auditVolumes(call: SubcommandCall): Promise<number> {
  const { usage: usageCode, unknown: failureCode } = auditCodes;
  const args = auditArguments(call, { usageCode });
  if (args === undefined) return auditCodes.clean;
  if (args.ids.length > 0 && !args.isAgreed && call.stdin.isTTY !== true) {
    throw usageError(call, '--delete cannot ask for confirmation without a terminal: add --yes', { usageCode });
  }
  const { transport } = connectAsSidecar(call, args, { failureCode });
  await using _transport = transport;
  const progress = stderrProgress(call);
  const ending = new AbortController();
  const signal = AbortSignal.any([call.signal, ending.signal]);
  try {
    const logger = auditLogger(call, args.config);
    await using driver = await auditedDriver(args.config, {
      progress,
      logger,
      signal,
      onGone: (error) => ending.abort(error),
    });
    const client = new KubeClient({ transport, fieldManager });
    return await auditDriver(call, args, {
      driver,
      transport,
      client,
      journal: journalObjects({ config: args.config, driver }),
      homeOf: homeIn(args.config, driver),
      secondLookMs: args.secondLookMs,
      progress,
      clock: systemClock,
      logger,
      signal,
    });
  } catch (error) {
    progress.clear();
    const reason = signal.aborted ? (signal.reason as Error) : (error as Error);
    if (!signal.aborted && !isFailedRead(error)) throw error;
    throw new SubcommandError(`the audit cannot be carried out: ${reason.message}`, {
      exitCode: failureCode,
      cause: error,
    });
  }
}

function isFailedRead(error: unknown): boolean {
  return [CannotReadError, ApiError, TransportError].some((each) => error instanceof each);
}

async function auditDriver(call: SubcommandCall, args: AuditArguments, options: AuditOptions): Promise<number> {
  const { driver, progress } = options;
  const found = await audit(options);
  progress.clear();
  const { config, context, plugin } = args;
  const program = call.program.replace(/ audit$/, '');
  const report: ReportContext = {
    driver: driver.name,
    wallMs: options.clock.wallMs(),
    commandFor: (finding) => commandFor(finding, found, { program, config, context, plugin }),
  };
  if (args.output === 'table') call.stdout.write(auditText(report, found));
  const deletions = args.ids.length === 0 ? [] : await deleteAll(call, args, { found, options });
  if (args.output === 'json') call.stdout.write(auditJson(report, found, deletions));
  else for (const deletion of deletions) call.stdout.write(deletionText(deletion));
  return exitCodeOf(found, deletions);
}

/** One id that must not be deleted is reason to delete none. */
async function deleteAll(
  call: SubcommandCall,
  { ids, isAgreed, mayBeUnproved, secret }: AuditArguments,
  { found, options }: { found: Audit; options: AuditOptions },
): Promise<Deletion[]> {
  const { progress, journal } = options;
  const refused: Deletion[] = [];
  const allowed: { id: string; record: IndexedRecord }[] = [];
  for (const id of ids) {
    try {
      allowed.push({ id, record: deletableRecord(id, found, { mayBeUnproved }) });
    } catch (error) {
      if (!(error instanceof NotDeletableError)) throw error;
      refused.push({ volumeId: id, result: 'refused', detail: error.message });
    }
  }
  if (refused.length > 0 || journal === undefined) return refused;
  const ask = {
    heading: `These volumes of ${printable(options.driver.name)} will be deleted, with all data on them:`,
    items: ids,
    question: 'Delete them?',
  };
  if (!isAgreed && !(await isAgreedTo(call, ask))) return [];
  const deletions: Deletion[] = [];
  for (const { id, record } of allowed) {
    progress.at(`Deleting ${printable(id)}`);
    deletions.push(await deleteOne(id, record, { ...options, journal, secret }));
  }
  progress.clear();
  return deletions;
}

async function deleteOne(
  volumeId: string,
  record: IndexedRecord,
  options: Parameters<typeof deleteLeaked>[2],
): Promise<Deletion> {
  try {
    return { volumeId, result: 'deleted', detail: await deleteLeaked(volumeId, record, options) };
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof NotDeletableError) return { volumeId, result: 'refused', detail: message };
    // an interruption must not hide what was deleted before it
    const stopped = options.signal.aborted ? (options.signal.reason as Error) : undefined;
    const detail = stopped === undefined || stopped === error ? message : `${stopped.message}: ${message}`;
    return { volumeId, result: 'failed', detail };
  }
}

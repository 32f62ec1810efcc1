/** `csi-provisioner audit`: arguments, connections and output around the audit. */
import { systemClock } from '../base/clock.ts';
import { printable } from '../base/printable.ts';
import { audit, type Audit, type AuditOptions } from '../audit/audit.ts';
import {
  auditCodes,
  auditJson,
  auditText,
  type Deletion,
  deletionText,
  exitCodeOf,
  type ReportContext,
} from '../audit/audit-report.ts';
import { CannotReadError } from '../audit/cannot-read-error.ts';
import { deletableRecord, NotDeletableError } from '../audit/deletable-record.ts';
import { deleteLeaked } from '../audit/delete-leaked.ts';
import type { IndexedRecord } from '../audit/record-index.ts';
import { ApiError, TransportError } from '../kube/client/api-error.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import { type AuditArguments, auditArguments } from './audit-arguments.ts';
import { commandFor } from './audit-commands.ts';
import { auditedDriver, auditLogger, homeIn } from './audited-driver.ts';
import { connectAsSidecar } from './cluster-connection.ts';
import { isAgreedTo } from './confirmation.ts';
import { fieldManager } from './kubernetes.ts';
import { journalObjects } from './sidecar-journal.ts';
import { stderrProgress } from './stderr-progress.ts';
import { type SubcommandCall, SubcommandError, usageError } from './subcommand-call.ts';

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

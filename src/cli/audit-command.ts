/** `csi-provisioner audit`: arguments, connections and output around the audit. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { printable } from '../base/printable.ts';
import { type Progress, progressLine } from '../base/progress.ts';
import { textLogger } from '../base/text-logger.ts';
import { audit, type Audit, type AuditOptions } from '../audit/audit.ts';
import { auditCodes, auditJson, auditText, type Deletion, deletionText, exitCodeOf } from '../audit/audit-report.ts';
import { CannotLookError } from '../audit/cannot-look-error.ts';
import { deletableRecord, NotDeletableError } from '../audit/deletable-record.ts';
import { deleteLeaked } from '../audit/delete-leaked.ts';
import type { IndexedRecord } from '../audit/record-index.ts';
import { centralVolumeHome, nodeVolumeHome } from '../audit/volume-home.ts';
import { Driver } from '../csi/driver.ts';
import { ApiError, TransportError } from '../kube/api-error.ts';
import { KubeClient } from '../kube/kube-client.ts';
import { type AuditArguments, auditArguments } from './audit-arguments.ts';
import { connectCluster } from './cluster-connection.ts';
import { fieldManager } from './kubernetes.ts';
import { journalObjects } from './sidecar-journal.ts';
import { type SubcommandCall, SubcommandError, usageError } from './subcommand-call.ts';

/** How long the driver may take until it answers for the first time, in milliseconds. */
const maxConnectMs = 10_000;
/** Max size of a response: of a driver without pages that of its whole list, in bytes. */
const maxResponseBytes = 256 * 1024 * 1024;

/** Compares, and deletes what `--delete` names. Without that it changes nothing, and is safe to repeat. */
export async function auditVolumes(call: SubcommandCall): Promise<number> {
  const { usage: usageCode, unknown: failureCode } = auditCodes;
  const args = auditArguments(call, { usageCode });
  if (args === undefined) return auditCodes.clean;
  if (args.ids.length > 0 && !args.isAgreed && call.stdin.isTTY !== true) {
    throw usageError(call, 'without a terminal nobody can be asked whether to delete: add --yes', { usageCode });
  }
  const { kubeconfigPath, masterUrl } = args.config.kubernetes;
  const { transport } = connectCluster(
    call,
    {
      context: args.context,
      ...(kubeconfigPath !== '' && { kubeconfig: kubeconfigPath }),
      ...(masterUrl !== '' && { master: masterUrl }),
    },
    { failureCode },
  );
  await using _transport = transport;
  const { stderr } = call;
  const columns = stderr.isTTY === true ? (stderr.columns ?? 80) : undefined;
  const progress = progressLine({ write: (text) => stderr.write(text), columns, clock: systemClock });
  const ending = new AbortController();
  const signal = AbortSignal.any([call.signal, ending.signal]);
  try {
    await using driver = await connectDriver(call, args, { progress, signal, onGone: (error) => ending.abort(error) });
    const client = new KubeClient({ transport, fieldManager });
    return await auditDriver(call, args, {
      driver,
      transport,
      client,
      journal: journalObjects({ config: args.config, driver }),
      homeOf: homeOf(driver, args),
      secondLookMs: args.secondLookMs,
      progress,
      clock: systemClock,
      logger: loggerOf(call, args),
      signal,
    });
  } catch (error) {
    progress.clear();
    const reason = signal.aborted ? (signal.reason as Error) : (error as Error);
    if (!signal.aborted && !isFailedLook(error)) throw error;
    throw new SubcommandError(`nothing can be said: ${reason.message}`, { exitCode: failureCode, cause: error });
  }
}

function isFailedLook(error: unknown): boolean {
  return [CannotLookError, ApiError, TransportError].some((each) => error instanceof each);
}

/** Errors of single steps are part of the output; the log has what the driver and the API are asked. */
function loggerOf(call: SubcommandCall, { config }: AuditArguments): Logger {
  const { verbosity } = config.logging;
  const level = verbosity >= 5 ? 'trace' : verbosity >= 2 ? 'debug' : 'error';
  return textLogger({ level, write: (line) => call.stderr.write(line) });
}

/** @throws {CannotLookError} when it does not answer in time, or not as a driver. */
async function connectDriver(
  call: SubcommandCall,
  args: AuditArguments,
  { progress, signal, onGone }: { progress: Progress; signal: AbortSignal; onGone: (error: Error) => void },
): Promise<Driver> {
  const { csiAddress: address, csiTimeoutMs: timeoutMs, nodeDeployment } = args.config;
  const patience = new AbortController();
  const timer = systemClock.after(maxConnectMs, () =>
    patience.abort(new Error(`no driver answered within ${maxConnectMs / 1000} s`)),
  );
  progress.at(`Connecting to the driver on ${printable(address)}`);
  try {
    return await Driver.connect({
      address,
      timeoutMs,
      maxResponseBytes,
      askNodeInfo: nodeDeployment !== null,
      clock: systemClock,
      logger: loggerOf(call, args),
      onGone,
      signal: AbortSignal.any([signal, patience.signal]),
    });
  } catch (error) {
    throw new CannotLookError(`the driver on ${address}: ${(error as Error).message}. See --csi-address`, {
      cause: error,
    });
  } finally {
    timer.cancel();
  }
}

function homeOf(driver: Driver, { config }: AuditArguments): AuditOptions['homeOf'] {
  const { nodeInfo, name: driverName } = driver;
  const nodeName = config.nodeDeployment?.nodeName;
  if (nodeName === undefined || nodeInfo === undefined) return (volume) => centralVolumeHome(volume, driverName);
  return (volume) => nodeVolumeHome(volume, { driverName, nodeName, nodeInfo });
}

async function auditDriver(call: SubcommandCall, args: AuditArguments, options: AuditOptions): Promise<number> {
  const { driver, progress } = options;
  const found = await audit(options);
  progress.clear();
  if (args.output === 'table') call.stdout.write(auditText(driver.name, found));
  const deletions = args.ids.length === 0 ? [] : await deleteAll(call, args, { found, options });
  if (args.output === 'json') call.stdout.write(auditJson(driver.name, found, deletions));
  else for (const deletion of deletions) call.stdout.write(deletionText(deletion));
  return exitCodeOf(found, deletions);
}

/** One id that must not be deleted is reason to delete none. */
async function deleteAll(
  call: SubcommandCall,
  { ids, isAgreed }: AuditArguments,
  { found, options }: { found: Audit; options: AuditOptions },
): Promise<Deletion[]> {
  const { progress, journal } = options;
  const refused: Deletion[] = [];
  const allowed: { id: string; record: IndexedRecord }[] = [];
  for (const id of ids) {
    try {
      allowed.push({ id, record: deletableRecord(id, found) });
    } catch (error) {
      if (!(error instanceof NotDeletableError)) throw error;
      refused.push({ volumeId: id, result: 'refused', detail: error.message });
    }
  }
  if (refused.length > 0 || journal === undefined) return refused;
  if (!isAgreed && !(await isAgreedTo(call, options.driver.name, ids))) return [];
  const deletions: Deletion[] = [];
  for (const { id, record } of allowed) {
    progress.at(`Deleting ${printable(id)}`);
    deletions.push(await deleteOne(id, record, { ...options, journal }));
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
    options.signal.throwIfAborted();
    const result = error instanceof NotDeletableError ? 'refused' : 'failed';
    return { volumeId, result, detail: (error as Error).message };
  }
}

async function isAgreedTo(
  { stdin, stderr, signal }: SubcommandCall,
  driver: string,
  ids: readonly string[],
): Promise<boolean> {
  stderr.write(`Volumes of ${printable(driver)} that will be deleted, with all that is on them:\n`);
  for (const id of ids) stderr.write(`  ${printable(id)}\n`);
  const lines = createInterface({ input: stdin });
  try {
    stderr.write('Delete them? Type "yes": ');
    const ended = once(lines, 'close', { signal }).then(() => '');
    const answer = await Promise.race([lines.question('', { signal }), ended]);
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    lines.close();
  }
}

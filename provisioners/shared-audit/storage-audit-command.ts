/** `audit` of a provisioner whose volumes are directories: arguments, connection, question and output around the audit. */
import { deletionText } from '../../src/audit/audit-report.ts';
import { CannotReadError, NotDeletableError } from '../../src/audit/audit-errors.ts';
import { systemClock } from '../../src/base/clock.ts';
import { printable } from '../../src/base/printable.ts';
import {
  durationOf,
  isAgreedTo,
  outputOf,
  readArguments,
  readValues,
  stderrProgress,
  type SubcommandCall,
  SubcommandError,
  subcommandParser,
  usageError,
} from '../../src/cli/subcommand-call.ts';
import { connectCluster } from '../../src/cli/cluster-connection.ts';
import { ApiError, TransportError } from '../../src/kube/client/api-error.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { Transport } from '../../src/kube/client/transport.ts';
import { type AuditedStorage, auditStorage, type StorageAudit } from './storage-audit.ts';
import {
  auditCodes,
  type Deletion,
  storageAuditCode,
  storageAuditJson,
  storageAuditText,
} from './storage-audit-report.ts';

export { CannotReadError, NotDeletableError, SubcommandError, type SubcommandCall };

export interface StorageAuditCommand {
  /** What the help says first. */
  description: string;
  /** What the help says last. */
  notes: string;
  /** What `--delete` deletes, for the help. Default: the directory with the id, with all data in it. */
  deletes?: string;
  /** Instead of the usual kubeconfig. */
  connection?: { kubeconfig?: string; master?: string };
  /** Called once the arguments are understood. @throws {SubcommandError} for settings with which nothing can be audited. */
  open: (connected: { client: KubeClient; transport: Transport }) => AuditedStorage;
}

interface Arguments {
  secondLookMs: number;
  output: 'table' | 'json';
  id: string | undefined;
  isAgreed: boolean;
  context: string | undefined;
}

/**
 * Runs the subcommand.
 *
 * @returns the exit code.
 * @throws {SubcommandError} when it cannot be run; its message is for standard error.
 */
export async function runStorageAudit(call: SubcommandCall, command: StorageAuditCommand): Promise<number> {
  const args = argumentsOf(call, command);
  if (args === undefined) return auditCodes.clean;
  const failureCode = auditCodes.unknown;
  const { transport } = connectCluster(call, { ...command.connection, context: args.context }, { failureCode });
  await using _transport = transport;
  const storage = command.open({ client: new KubeClient({ transport, fieldManager: call.program }), transport });
  const progress = stderrProgress(call);
  try {
    const audit = await auditStorage(storage, { ...args, progress, clock: systemClock, signal: call.signal });
    progress.clear();
    if (args.output === 'table') call.stdout.write(storageAuditText(storage.name, audit));
    const deletions = args.id === undefined ? [] : await deleteOne(call, { ...args, id: args.id }, { storage, audit });
    if (args.output === 'json') call.stdout.write(storageAuditJson(storage.name, audit, deletions));
    else for (const deletion of deletions) call.stdout.write(deletionText(deletion));
    return storageAuditCode(audit, deletions);
  } catch (error) {
    progress.clear();
    const reason = call.signal.aborted ? (call.signal.reason as Error) : (error as Error);
    const isFailedRead = [CannotReadError, ApiError, TransportError].some((each) => error instanceof each);
    if (!call.signal.aborted && !isFailedRead) throw error;
    throw new SubcommandError(`the audit cannot be carried out: ${reason.message}`, {
      exitCode: failureCode,
      cause: error,
    });
  }
}

const codes = `
Exit codes: 0 nothing needs attention; 1 wrong arguments, or something that must not be deleted;
2 findings that need attention; 3 not everything could be checked.`;

function argumentsOf(call: SubcommandCall, command: StorageAuditCommand): Arguments | undefined {
  const { description, notes, deletes = 'the directory with this id in the output, with all data in it' } = command;
  const usageCode = auditCodes.usage;
  const parser = subcommandParser(call)
    .description(description)
    .option('--second-look <duration>', 'pause before findings are checked a second time; 0: no second look', '1m')
    .option('-o, --output <format>', 'table or json', 'table')
    .option('--delete <id>', `delete ${deletes}`)
    .option('--yes', 'delete without confirmation')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addHelpText('after', `\n${notes}\n${codes}`);
  if (!readArguments(parser, call, { usageCode })) return undefined;
  const flags = parser.opts<{ secondLook: string; output: string; delete?: string; yes?: boolean; context?: string }>();
  if (flags.delete !== undefined && flags.yes !== true && call.stdin.isTTY !== true) {
    throw usageError(call, '--delete cannot ask for confirmation without a terminal: add --yes', { usageCode });
  }
  return readValues(call, { usageCode }, () => ({
    secondLookMs: durationOf('--second-look', flags.secondLook),
    output: outputOf(flags.output),
    id: flags.delete,
    isAgreed: flags.yes ?? false,
    context: flags.context,
  }));
}

async function deleteOne(
  call: SubcommandCall,
  { id, isAgreed }: Arguments & { id: string },
  { storage, audit }: { storage: AuditedStorage; audit: StorageAudit },
): Promise<Deletion[]> {
  const refused = (detail: string): Deletion[] => [{ volumeId: id, result: 'refused', detail }];
  const finding = audit.findings.find((each) => each.id === id);
  const unknown = 'the audit found nothing with this id that may be deleted';
  if (finding?.isDeletable !== true) return refused(finding === undefined ? unknown : `${unknown}: ${finding.detail}`);
  const usual = `This directory of ${printable(storage.name)} will be deleted, with all data in it:`;
  const ask = {
    heading: printable(storage.deletionOf?.(finding) ?? usual),
    items: [`${id} (${finding.state})`],
    question: 'Delete it?',
  };
  if (!isAgreed && !(await isAgreedTo(call, ask))) return [];
  try {
    return [{ volumeId: id, result: 'deleted', detail: await storage.delete(finding, call.signal) }];
  } catch (error) {
    const { message } = error as Error;
    return error instanceof NotDeletableError
      ? refused(message)
      : [{ volumeId: id, result: 'failed', detail: message }];
  }
}

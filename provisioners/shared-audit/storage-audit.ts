/** What an audit of a provisioner's directories finds, and what it asks of the provisioner. Changes nothing by itself. */
import type { Clock } from '../../src/base/clock.ts';
import type { Progress } from '../../src/base/progress.ts';

/** One thing that is not as it should be, or that is kept on purpose. */
export interface StorageFinding {
  /** Such as `lost`, `unclaimed` or `archive`: the same id in the same state in two looks is one finding. */
  readonly state: string;
  /** What `--delete` takes, such as a path from the root of the storage. */
  readonly id: string;
  readonly persistentVolume?: string;
  /** RFC 3339. */
  readonly since?: string;
  readonly bytes?: number;
  readonly detail: string;
  /** Whether `--delete` takes it. */
  readonly isDeletable: boolean;
  /** Whether it needs attention, as the exit code says: not for what is kept on purpose. */
  readonly isTrouble: boolean;
}

export interface StorageLook {
  readonly findings: readonly StorageFinding[];
  /** What could not be checked. */
  readonly incomplete: readonly string[];
  /** How many there are of what was compared, for the summary. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface AuditedStorage {
  /** For the heading: which provisioner and which storage. */
  readonly name: string;
  /** Compares once. @throws {CannotReadError} and errors of requests when that is not possible. */
  look(signal: AbortSignal): Promise<StorageLook>;
  /** How many bytes the finding takes; asked only for what is reported in the end. Default: nothing is known. */
  bytesOf?(finding: StorageFinding, signal: AbortSignal): Promise<number | undefined>;
  /** What `delete` will do, for the confirmation prompt. Default: that a directory will be deleted, with all data in it. */
  deletionOf?(finding: StorageFinding): string | undefined;
  /**
   * Deletes what a finding names, after checking it once more.
   *
   * @returns what was done.
   * @throws {NotDeletableError} when it must not be deleted.
   */
  delete(finding: StorageFinding, signal: AbortSignal): Promise<string>;
}

/** The last look, with what was found in all of them. */
export interface StorageAudit extends StorageLook {
  readonly looks: 1 | 2;
}

/** Compares once, and if there are findings again later. */
export async function auditStorage(
  storage: AuditedStorage,
  options: { secondLookMs: number; progress: Progress; clock: Clock; signal: AbortSignal },
): Promise<StorageAudit> {
  const { secondLookMs, progress, clock, signal } = options;
  progress.at('Comparing directories with PersistentVolumes');
  const first = await storage.look(signal);
  if (secondLookMs <= 0 || first.findings.length === 0) {
    return { ...first, findings: await sized(storage, first.findings, options), looks: 1 };
  }
  progress.at(`Checking the findings again in ${Math.ceil(secondLookMs / 1000)} s`);
  await clock.sleep(secondLookMs, { signal });
  const before = new Set(first.findings.map(keyOf));
  const second = await storage.look(signal);
  const findings = second.findings.filter((finding) => before.has(keyOf(finding)));
  return { ...second, findings: await sized(storage, findings, options), looks: 2 };
}

function keyOf({ state, id, persistentVolume = '' }: StorageFinding): string {
  return JSON.stringify([state, id, persistentVolume]);
}

async function sized(
  storage: AuditedStorage,
  findings: readonly StorageFinding[],
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<StorageFinding[]> {
  const measured: StorageFinding[] = [];
  for (const finding of findings) {
    progress.at(`Measuring ${finding.id}`);
    const bytes = finding.isDeletable ? await storage.bytesOf?.(finding, signal) : undefined;
    measured.push(bytes === undefined ? finding : { ...finding, bytes });
  }
  return measured;
}

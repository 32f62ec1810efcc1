import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { type ReportedPhase, type ReportedWait, waitReasons } from '../../diagnostics/status-page/status-report.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';

interface Wait {
  count: number;
  firstEndsInMs: number | undefined;
  lastEndsInMs: number | undefined;
  example: string | undefined;
}

const nobody: Readonly<Wait> = { count: 0, firstEndsInMs: undefined, lastEndsInMs: undefined, example: undefined };

/** Goes through the open records, in slices: how many are in which phase, and what they wait for. */
export async function recordedWork(
  controller: Pick<ControllerStatus, 'openIntents'>,
  others: { sharing: { count: number; example: string | undefined }; isJournalRefused: boolean },
): Promise<{ phases: ReportedPhase[]; waits: ReportedWait[] }> {
  const phases = new Map<string, ReportedPhase>();
  const waits = new Map<ReportedWait['reason'], Wait>([
    ['shared-storage', { ...nobody, ...others.sharing }],
    ['journal-rights', { ...nobody, count: others.isJournalRefused ? 1 : 0 }],
  ]);
  for (const { phase, claim, createdAt, reason, problem, wait } of controller.openIntents()) {
    if (sliceSpent()) await nextSlice();
    const { count, oldest } = phases.get(phase) ?? { count: 0, oldest: undefined };
    const isOldest = oldest === undefined || createdAt < oldest.createdAt;
    const name = `${claim.namespace}/${claim.name}`;
    const own = { claim: name, createdAt, ...(reason !== undefined && { problem: `${reason}: ${problem ?? ''}` }) };
    phases.set(phase, { phase, count: count + 1, oldest: isOldest ? own : oldest });
    if (wait === undefined) continue;
    const known = waits.get(wait.reason) ?? { ...nobody, example: `claim ${name}` };
    waits.set(wait.reason, known);
    known.count += 1;
    const { endsInMs } = wait;
    if (endsInMs === undefined) continue;
    known.firstEndsInMs = Math.min(known.firstEndsInMs ?? Infinity, endsInMs);
    known.lastEndsInMs = Math.max(known.lastEndsInMs ?? 0, endsInMs);
  }
  const inOrder = [...phases.values()].sort((a, b) => (a.phase < b.phase ? -1 : 1));
  return { phases: inOrder, waits: waitReasons.map((reason) => ({ reason, ...(waits.get(reason) ?? nobody) })) };
}

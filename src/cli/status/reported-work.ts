/** What is under way, as the status page shows it: calls, open records, released volumes, the last audit, and whether the API server responds. */
import type { AuditRow, AuditState } from '../../audit/recurring-audit.ts';
import { ageText } from '../../base/age-text.ts';
import type { Clock } from '../../base/clock.ts';
import { compareBytes } from '../../base/compare-bytes.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { capacityText } from '../../base/quantity.ts';
import type { CallSubject, ObservedCall, StartedCall } from '../../csi/unary-call.ts';
import {
  type ReportedAudit,
  type ReportedCall,
  type ReportedFinding,
  type ReportedPhase,
  type ReportedRequests,
  type ReportedWait,
  type StatusReport,
  waitReasons,
} from '../../diagnostics/status-page/status-report.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';
import type { ReleasedVolume } from '../../provision/object-progress.ts';

/** Calls to the driver that have not ended, in the order in which they began. */
export class CallsInFlight {
  readonly #options: { clock: Clock; requests: RecentCalls };
  readonly #calls = new Set<StartedCall & { readonly startedMs: number }>();

  constructor(options: { clock: Clock; requests: RecentCalls }) {
    this.#options = options;
  }

  begin({ method, about }: StartedCall): ObservedCall {
    const { clock, requests } = this.#options;
    const call = { method, about, startedMs: clock.monotonicMs() };
    this.#calls.add(call);
    return {
      ended: (code) => {
        this.#calls.delete(call);
        const seconds = (clock.monotonicMs() - call.startedMs) / 1000;
        requests.record(shortName(method), { failed: code !== 'OK', seconds });
      },
    };
  }

  /** Longest first. */
  list(): ReportedCall[] {
    const nowMs = this.#options.clock.monotonicMs();
    return [...this.#calls].map(({ method, about, startedMs }) => ({
      method: shortName(method),
      about: about === undefined ? '' : subjectText(about),
      seconds: (nowMs - startedMs) / 1000,
    }));
  }
}

/** `CreateVolume` for `/csi.v1.Controller/CreateVolume`. */
function shortName(method: string): string {
  return method.slice(method.lastIndexOf('/') + 1);
}

function subjectText(about: CallSubject): string {
  const [[kind, name] = ['', '']] = Object.entries(about);
  return `${kind} ${name}`;
}

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

type Released = NonNullable<StatusReport['work']>['released'];

/** As many as the page may show; the others are only counted. */
const maxKept = 50;

/** Those that fail before the others, then the oldest. Goes through all volumes of the cluster, in slices. */
export async function releasedVolumes(
  controller: Pick<ControllerStatus, 'releasedVolumes'>,
): Promise<Released & { sharing: { count: number; example: string | undefined } }> {
  let first: ReleasedVolume[] = [];
  const sharing: { count: number; example: string | undefined } = { count: 0, example: undefined };
  let [total, failing] = [0, 0];
  for (const volume of controller.releasedVolumes()) {
    if (sliceSpent()) await nextSlice();
    if (volume === undefined) continue;
    total += 1;
    if (isFailing(volume)) failing += 1;
    if (volume.step === 'shared-storage') {
      sharing.count += 1;
      sharing.example ??= `volume ${volume.name}`;
    }
    first.push(volume);
    if (first.length >= 2 * maxKept) first = mostUrgent(first);
  }
  return { total, failing, first: mostUrgent(first), sharing };
}

function mostUrgent(volumes: readonly ReleasedVolume[]): ReleasedVolume[] {
  return volumes.toSorted(byUrgency).slice(0, maxKept);
}

function byUrgency(a: ReleasedVolume, b: ReleasedVolume): number {
  const urgency = Number(isFailing(b)) - Number(isFailing(a));
  return urgency || compareBytes(a.releasedAt ?? '', b.releasedAt ?? '') || compareBytes(a.name, b.name);
}

/** Also while the next attempt is made: until one succeeds. */
function isFailing({ failures, lastError }: ReleasedVolume): boolean {
  return lastError !== undefined || failures > 0;
}

/** The last audit as the status page shows it. */
export function reportedAudit({ last, problem }: AuditState, atMs: number): ReportedAudit {
  if (last === undefined) return { last, problem };
  const { rows, counts, endedAtMs, seconds } = last;
  return { last: { endedAtMs, seconds, counts, findings: rows.map((row) => reported(row, atMs)) }, problem };
}

function reported({ finding, command }: AuditRow, atMs: number): ReportedFinding {
  const { state, volumeId, volumeName, persistentVolumes = [], claim = '', since, capacityBytes, detail } = finding;
  return {
    state,
    volume: volumeId ?? volumeName ?? persistentVolumes.join(', '),
    claim,
    age: since === undefined ? '' : ageText(atMs - Date.parse(since)),
    size: capacityBytes === undefined ? '' : capacityText(BigInt(capacityBytes)),
    detail,
    command,
  };
}

/** A single failure is no outage: requests are sent again, over other connections. In milliseconds. */
const patienceMs = 10_000;
/** Failures of one moment may have been aborted together: the last one must have come so much later. In milliseconds. */
const spanMs = 5000;
/** So long after the last failure nobody knows any more: what is away for long is asked again and again. In milliseconds. */
const memoryMs = 120_000;

/** Of what stands before the API server, or of one that is overloaded. Any other code is its response. */
const noResponses: ReadonlySet<string> = new Set(['<error>', '502', '503', '504']);

/** Whether the API server responds at all, from the requests that are sent anyway. */
export class ApiServerResponses {
  readonly #clock: Clock;
  /** The first and the last failure since the last response, in monotonic milliseconds. */
  #failures: { readonly firstMs: number; readonly lastMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param code - as of a `RequestObservation`. */
  record(code: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#failures = noResponses.has(code) ? { firstMs: this.#failures?.firstMs ?? nowMs, lastMs: nowMs } : undefined;
  }

  /** Since when no request has had a response, in milliseconds since the Unix epoch; undefined: the last one was, or nobody knows. */
  get failingSinceMs(): number | undefined {
    if (this.#failures === undefined) return undefined;
    const { firstMs, lastMs } = this.#failures;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - firstMs < patienceMs || lastMs - firstMs < spanMs || nowMs - lastMs > memoryMs) return undefined;
    return this.#clock.wallMs() - (nowMs - firstMs);
  }
}

const windowMinutes = 5;
const maxSamples = 128;
/** Kinds beyond these are counted together. */
const maxKinds = 64;

interface Minute {
  minute: number;
  count: number;
  failed: number;
}

interface Kind {
  readonly minutes: Minute[];
  /** Durations of the last calls, in seconds; a ring. */
  readonly seconds: Float64Array;
  total: number;
}

/** Rates and latencies of calls of several kinds: a fixed amount of memory for each kind, a few operations for each call. */
export class RecentCalls {
  readonly #clock: Clock;
  readonly #kinds = new Map<string, Kind>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  record(name: string, call: { failed: boolean; seconds: number }): void {
    const kind = this.#kind(name);
    kind.seconds[kind.total % maxSamples] = call.seconds;
    kind.total += 1;
    const minute = this.#minute();
    const slot = (kind.minutes[minute % windowMinutes] ??= { minute, count: 0, failed: 0 });
    if (slot.minute !== minute) Object.assign(slot, { minute, count: 0, failed: 0 });
    slot.count += 1;
    if (call.failed) slot.failed += 1;
  }

  /** Kinds by name, calls to the driver first; those without a call in the last five minutes too. */
  list(): ReportedRequests[] {
    const now = this.#minute();
    const kinds = [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1)); // capital letters come first
    return kinds.map(([name, { minutes, seconds, total }]) => {
      const recent = minutes.filter(({ minute }) => minute > now - windowMinutes);
      const sorted = seconds.slice(0, Math.min(total, maxSamples)).sort();
      const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
      return {
        name,
        count: recent.reduce((sum, { count }) => sum + count, 0),
        failed: recent.reduce((sum, { failed }) => sum + failed, 0),
        medianSeconds: at(0.5),
        p95Seconds: at(0.95),
      };
    });
  }

  #kind(name: string): Kind {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    if (this.#kinds.size >= maxKinds && name !== 'other') return this.#kind('other');
    const kind: Kind = { minutes: [], seconds: new Float64Array(maxSamples), total: 0 };
    this.#kinds.set(name, kind);
    return kind;
  }

  #minute(): number {
    return Math.floor(this.#clock.monotonicMs() / 60_000);
  }
}

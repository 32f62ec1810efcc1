/** What the status page shows: plain data, collected when somebody looks. Nothing of it may be a secret. */

/** What a claim waits for, the most urgent first. The page has a text for each. */
export const claimSteps = [
  'retrying',
  'class-missing',
  'saving',
  'syncing',
  'queued',
  'waiting',
  'not-handed-over',
  'waiting-for-consumer',
  'volume-made',
  'idle',
] as const;

export type ReportedStep = (typeof claimSteps)[number];

/** Steps that need attention. */
export const badSteps: ReadonlySet<ReportedStep> = new Set(['retrying', 'class-missing', 'saving']);

/** What a claim waits for, as `csi-provisioner why` says it. */
export interface ReportedExplanation {
  readonly verdict: string;
  readonly cause: string | null;
  readonly message: string;
  /** What to do; empty when there is nothing to do. */
  readonly cure: string;
}

/** A claim without a volume. */
export interface ReportedClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly className: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly step: ReportedStep;
  /** Attempts in a row that failed, or ended with a wait. */
  readonly failures: number;
  /** `waiting`: what it waits for; nothing has failed. */
  readonly lastError:
    { readonly message: string; readonly kind: 'failed' | 'waiting'; readonly atMs: number } | undefined;
  readonly nextTryInMs: number | undefined;
  /** What a former attempt for it waits for, before it is revoked. */
  readonly wait?: Pick<ReportedWait, 'reason'> & { readonly endsInMs: number | undefined };
}

/** What the deletion of a volume waits for. */
export type ReportedVolumeStep =
  'syncing' | 'queued' | 'retrying' | 'earlier-call' | 'shared-storage' | 'other-source' | 'idle';

/** A released volume whose storage is to be deleted. */
export interface ReportedVolume {
  readonly name: string;
  /** `namespace/name` of the claim that had it; empty: not known. */
  readonly claim: string;
  /** RFC 3339. */
  readonly releasedAt: string | undefined;
  readonly step: ReportedVolumeStep;
  readonly failures: number;
  readonly lastError: { readonly message: string; readonly atMs: number; readonly sinceMs: number } | undefined;
  readonly nextTryInMs: number | undefined;
  readonly waitText: string | undefined;
}

/** What is waited for deliberately, in the order of the page. */
export const waitReasons = [
  'earlier-call',
  'other-process',
  'late-save',
  'proof',
  'shared-storage',
  'journal-rights',
] as const;

export interface ReportedWait {
  readonly reason: (typeof waitReasons)[number];
  /** Volumes that wait for it. */
  readonly count: number;
  /** When the first and the last of these waits end, in milliseconds from now; undefined: at no time that is known. */
  readonly firstEndsInMs: number | undefined;
  readonly lastEndsInMs: number | undefined;
  /** One of those that wait. */
  readonly example: string | undefined;
}

/** What happened in each of up to 60 minutes, the oldest first; the last one is not over yet. */
export interface ReportedHour {
  readonly made: readonly number[];
  /** Attempts for claims. */
  readonly failed: readonly number[];
  readonly deleted: readonly number[];
  readonly deletionsFailed: readonly number[];
  /** Claims that waited; undefined: not known. */
  readonly waiting: readonly (number | undefined)[];
}

interface ReportedQueue {
  readonly name: string;
  readonly waiting: number;
  readonly processing: number;
  readonly delayed: number;
  readonly longestSeconds: number;
  /** Max keys in progress; undefined: not known. */
  readonly workers?: number;
}

/** Something in the cluster that does not fit this sidecar. */
export interface ReportedMisfit {
  /** A sentence, with a full stop. */
  readonly message: string;
  /** Likewise. */
  readonly cure: string;
}

/** The phase of records that only an operator can close. */
export const stuckPhase = 'stuck';

/** Open records of one phase of the intent journal. */
export interface ReportedPhase {
  readonly phase: string;
  readonly count: number;
  readonly oldest: { readonly claim: string; readonly createdAt: string; readonly problem?: string };
}

/** A call to the driver that has not ended. */
export interface ReportedCall {
  readonly method: string;
  /** What it is for, such as `claim default/data`. */
  readonly about: string;
  readonly seconds: number;
}

/** Requests of one kind. */
export interface ReportedRequests {
  readonly name: string;
  /** Of the last five minutes. */
  readonly count: number;
  readonly failed: number;
  /** Of the last 128, in seconds. */
  readonly medianSeconds: number;
  readonly p95Seconds: number;
}

/** One volume or record that the audit found. */
export interface ReportedFinding {
  readonly state: string;
  /** Its id, or its name where that is not known. */
  readonly volume: string;
  /** `namespace/name`; empty: none. */
  readonly claim: string;
  /** Empty: unknown. */
  readonly age: string;
  /** Empty: unknown. */
  readonly size: string;
  readonly detail: string;
  /** To copy; undefined: nothing is to be done. */
  readonly command: string | undefined;
}

/** The audits of `--audit-interval`. */
export interface ReportedAudit {
  /** Undefined: none has been carried out yet. */
  readonly last:
    | {
        readonly endedAtMs: number;
        readonly seconds: number;
        /** By state. */
        readonly counts: Readonly<Record<string, number>>;
        /** The worst first; not all of them. */
        readonly findings: readonly ReportedFinding[];
      }
    | undefined;
  /** Why there is no newer result, or no complete one. */
  readonly problem: string | undefined;
}

/** All times in milliseconds since the Unix epoch. */
export interface StatusReport {
  readonly atMs: number;
  readonly program: { readonly version: string; readonly host: string; readonly startedAtMs: number };
  readonly driver: {
    readonly name: string;
    readonly version: string;
    readonly connected: boolean;
    readonly capabilities: readonly string[];
  };
  /** `alone`: there is no leader election. */
  readonly role: {
    readonly name: 'leader' | 'standby' | 'alone';
    readonly sinceMs: number;
    /** Whom a standby waits for. Default: the leader. */
    readonly waitsFor?: string;
  };
  readonly unhealthyReason: string | undefined;
  /** Since when each request to the API server has failed; undefined: the last one was answered, or it is too early to tell. */
  readonly apiServer: { readonly failingSinceMs: number | undefined };
  /** What only the instance knows that works; undefined on a standby. */
  readonly work:
    | {
        /** Oldest first. */
        readonly claims: readonly ReportedClaim[];
        readonly queues: readonly ReportedQueue[];
        readonly phases: readonly ReportedPhase[];
        readonly released: {
          readonly total: number;
          readonly failing: number;
          /** Some of them: those that fail before the others, then the oldest. */
          readonly first: readonly ReportedVolume[];
        };
        /** One for each reason. */
        readonly waits: readonly ReportedWait[];
        /** The intent journal cannot be written: volumes are created without a record. */
        readonly isJournalRefused: boolean;
        readonly misfits: readonly ReportedMisfit[];
      }
    | undefined;
  /** Undefined on a standby. */
  readonly lastHour: ReportedHour | undefined;
  /** Undefined: there is none on this instance. */
  readonly audit?: ReportedAudit | undefined;
  /** Longest first. */
  readonly calls: readonly ReportedCall[];
  readonly requests: readonly ReportedRequests[];
  readonly process: {
    /** Share of time in which the event loop was busy, from 0 to 1: since the report before, and since the start. */
    readonly busy: number;
    readonly busyOverSeconds: number;
    readonly busySinceStart: number;
    readonly residentBytes: number;
    readonly heapUsedBytes: number;
    /** By how much timers were late while somebody watched, in milliseconds; undefined while nobody did. */
    readonly delay: { readonly p99Ms: number; readonly maxMs: number } | undefined;
  };
}

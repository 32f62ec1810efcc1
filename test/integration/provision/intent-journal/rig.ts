/** Journals of several processes over real HTTP on one API server. */
import type { Clock } from '../../../../src/base/clock.ts';
import { systemClock } from '../../../../src/base/clock.ts';
import { connect } from '../../../../src/kube/client/connect.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import type { Transport } from '../../../../src/kube/client/transport.ts';
import { clusterJournal } from '../../../../src/provision/intent-journal/cluster-journal.ts';
import { noJournalMetrics } from '../../../../src/provision/intent-journal/journal-metrics.ts';
import type {
  FoundIntent,
  IntentJournal,
  IntentPhase,
  IntentRecord,
  JournalListener,
} from '../../../../src/provision/intent-journal/intent-journal.ts';
import type { ClusterJournalOptions } from '../../../../src/provision/intent-journal/journal-parts.ts';
import { ApiServer, type ApiServerOptions } from '../../../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxObject } from '../../../../sandbox/api/client.ts';
import type { FaultRule, InjectedFault } from '../../../../sandbox/api/faults.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

export const prefix = 'csi-provisioner.journal/';
export const leaseResource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
export const never = new AbortController().signal;

/** UID of the n-th claim. */
export function uidOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** A record of the n-th claim, of about 1.2 kB. */
export function recordOf(
  n: number,
  more: { phase?: IntentPhase; handle?: string; plan?: Record<string, unknown> } = {},
): IntentRecord {
  const { phase = 'create', handle, plan = {} } = more;
  return {
    claim: { namespace: 'ns', name: `claim-${n}`, uid: uidOf(n) },
    volume: {
      name: `pvc-${uidOf(n)}`,
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns', name: `claim-${n}`, uid: uidOf(n) },
      className: 'fast',
      provisioner: 'drv.example.com',
      defaults: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    },
    plan: {
      request: { name: `pvc-${uidOf(n)}`, requiredBytes: '1073741824', parameters: { ...parameters } },
      ...plan,
    },
    phase,
    ...(handle !== undefined && { handle }),
    createdAt: '2026-01-01T00:00:00Z',
  };
}

/** Parameters of a class, which all records share. */
const parameters = Object.fromEntries(
  Array.from({ length: 8 }, (_, i) => [`parameter-${i}`, `a value of this class ${i}`]),
);

/** One process. */
export interface Process extends AsyncDisposable {
  journal: IntentJournal;
  /** What the listener heard, one short line each. */
  heard: string[];
  found: Map<string, FoundIntent>;
  log: LogLine[];
  transport: Transport;
  written: number[];
  protected: boolean[];
  reported: string[];
  /** Ends the background work. */
  stop(): Promise<void>;
}

export class Rig implements AsyncDisposable {
  readonly server: ApiServer;
  readonly api: SandboxClient;
  readonly url: string;
  readonly #processes: Process[] = [];

  private constructor(server: ApiServer, url: string) {
    this.server = server;
    this.url = url;
    this.api = server.client('test');
  }

  static async start(options: ApiServerOptions = {}): Promise<Rig> {
    const server = new ApiServer({ namespaces: ['default', 'ns'], ...options });
    const { url } = await server.start();
    return new Rig(server, url);
  }

  /** A process with a journal that is not open yet. */
  process(options: Partial<ClusterJournalOptions> & { clock?: Clock } = {}): Process {
    const log: LogLine[] = [];
    const logger = recordedLogger(log);
    const { clock = systemClock, ...more } = options;
    const userAgent = more.writer ?? 'journal-test';
    const transport = connect({ master: this.url, environment: {}, userAgent, logger });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const [written, isProtected, reported]: [number[], boolean[], string[]] = [[], [], []];
    const journal = clusterJournal({
      client,
      namespace: 'ns',
      lockName: 'lock',
      isKnownProvisioner: (name) => name === 'drv.example.com',
      exclusive: true,
      clock,
      logger,
      metrics: {
        ...noJournalMetrics,
        written: (_seconds, bytes) => written.push(bytes),
        isProtected: (is) => isProtected.push(is),
        reported: (reason) => reported.push(reason),
      },
      ...more,
    });
    const stop = new AbortController();
    const running = journal.run(stop.signal);
    const process: Process = {
      journal,
      heard: [],
      found: new Map(),
      log,
      transport,
      written,
      protected: isProtected,
      reported,
      stop: () => {
        stop.abort(new Error('the process stops'));
        return running;
      },
      [Symbol.asyncDispose]: async () => {
        stop.abort(new Error('the test is over'));
        await transport[Symbol.asyncDispose]();
        await running;
      },
    };
    this.#processes.push(process);
    return process;
  }

  /** A process with an open journal. */
  async open(options: Partial<ClusterJournalOptions> & { clock?: Clock } = {}): Promise<Process> {
    const process = this.process(options);
    await open(process);
    return process;
  }

  fault(rule: FaultRule): InjectedFault {
    return this.server.faults.add(rule);
  }

  /** The object of a shard. */
  shard(n = 0): SandboxObject | undefined {
    return this.api.get(leaseResource, { namespace: 'ns', name: `lock-journal-${n}` });
  }

  /** All objects of shards. */
  get shards(): SandboxObject[] {
    return this.api
      .list(leaseResource, { namespace: 'ns' })
      .filter(({ metadata }) => metadata.name.includes('-journal-'));
  }

  /** UIDs of the claims whose records are stored, in order. */
  get stored(): string[] {
    return this.shards
      .flatMap((shard) => keysOf(shard).filter((key) => key !== 'shard' && !key.startsWith('shared-')))
      .sort();
  }

  /** The stored JSON of the n-th claim's record. */
  entry(n: number): { writer: string; reportOnly?: string; record: IntentRecord } | undefined {
    const texts = this.shards.map(({ metadata }) => metadata.annotations?.[prefix + uidOf(n)]);
    const text = texts.find((each) => each !== undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { writer: string; record: IntentRecord });
  }

  /** Changes the annotations of a shard as a person would. */
  annotate(n: number, annotations: Record<string, string | undefined>): void {
    const shard = structuredClone(this.shard(n))!;
    const all = Object.entries({ ...shard.metadata.annotations, ...annotations });
    shard.metadata.annotations = Object.fromEntries(
      all.filter((each): each is [string, string] => each[1] !== undefined),
    );
    this.api.update(leaseResource, shard);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.#processes) await process[Symbol.asyncDispose]();
    await this.server.close();
  }
}

const nothing = (): void => undefined;

/** Nobody is interested in what others do to the records. */
export const silentListener: JournalListener = {
  onFound: nothing,
  onGone: nothing,
  onDiscarded: nothing,
  onDrainEnded: nothing,
  onRewound: nothing,
  onFenced: nothing,
};

/** Opens the journal of a process. */
export async function open({ journal, heard, found }: Process): Promise<void> {
  await journal.open(
    {
      onFound: (intent) => {
        const { uid, name } = intent.record.claim;
        found.set(uid, intent);
        heard.push(`${intent.owner} ${name}${intent.reportOnly === undefined ? '' : ' (report only)'}`);
      },
      onGone: (uid) => heard.push(`gone ${uid.slice(-2)}`),
      onDiscarded: (uid) => heard.push(`discarded ${uid.slice(-2)}`),
      onDrainEnded: () => heard.push('drain ended'),
      onRewound: () => heard.push('rewound'),
      onFenced: () => heard.push('fenced'),
    },
    never,
  );
}

export function keysOf({ metadata }: SandboxObject): string[] {
  return Object.keys(metadata.annotations ?? {})
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length));
}

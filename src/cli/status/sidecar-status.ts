/** Collects what the status page shows. What is counted as it happens is bounded; the rest is read when the page is requested. */
import os from 'node:os';
import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Clock } from '../../base/clock.ts';
import { compareBytes } from '../../base/compare-bytes.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import type { Driver } from '../../csi/driver.ts';
import type { NodeInformers } from '../../csi/topology/topology-nodes.ts';
import type { CallObserver } from '../../csi/unary-call.ts';
import { LastHour } from '../../diagnostics/status-page/last-hour.ts';
import {
  ApiServerResponses,
  CallsInFlight,
  RecentCalls,
  recordedWork,
  releasedVolumes,
  reportedAudit,
} from './reported-work.ts';
import { StatusPage } from '../../diagnostics/status-page/status-page.ts';
import type { ReportedClaim, StatusReport } from '../../diagnostics/status-page/status-report.ts';
import { explainOwnClaim } from '../../explain/explain-own-claim.ts';
import type { Explanation } from '../../explain/explanation.ts';
import type { ControllerMetrics } from '../../provision/controller-metrics.ts';
import type { JournalMetrics } from '../../provision/intent-journal/journal-metrics.ts';
import type { RequestObservation } from '../../kube/client/request.ts';
import type { ClaimProgress } from '../../provision/object-progress.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';
import type { Health } from '../../run/health.ts';
import type { Config } from '../config.ts';
import { version } from '../program.ts';
import type { ClusterMisfits } from './cluster-misfits.ts';
import type { AuditState } from '../../audit/recurring-audit.ts';

/** What is known once the endpoint starts. */
interface KnownParts {
  driver: Pick<Driver, 'name' | 'vendorVersion' | 'connected' | 'capabilities'>;
  ready: Pick<Health, 'unhealthyReason'>;
}

export class SidecarStatus implements Disposable {
  readonly #options: {
    config: Pick<Config, 'leaderElection' | 'nodeDeployment' | 'provisioning'>;
    clock: Clock;
    logger: Logger;
  };
  readonly #requests: RecentCalls;
  readonly #calls: CallsInFlight;
  readonly #hour: LastHour;
  readonly #apiServer: ApiServerResponses;
  readonly #startedAtMs: number;
  #isJournalRefused = false;
  #role: StatusReport['role'];
  #controller: ControllerStatus | undefined;
  #audits: AuditState | undefined;
  #misfits: ClusterMisfits | undefined;
  #nodes: NodeInformers | undefined;
  #lastUtilization: EventLoopUtilization = performance.eventLoopUtilization();
  #lastReportMs: number;

  constructor(options: { config: Config; clock: Clock; logger: Logger }) {
    const { config, clock } = options;
    this.#options = options;
    this.#requests = new RecentCalls(clock);
    this.#calls = new CallsInFlight({ clock, requests: this.#requests });
    this.#hour = new LastHour(clock);
    this.#apiServer = new ApiServerResponses(clock);
    this.#startedAtMs = clock.wallMs();
    const elects = config.leaderElection !== null && config.nodeDeployment === null;
    this.#role = { name: elects ? 'standby' : 'alone', sinceMs: this.#startedAtMs };
    this.#lastReportMs = clock.monotonicMs();
  }

  /** For the transports of Kubernetes. */
  readonly onRequest = ({ verb, resource, code, seconds }: RequestObservation): void => {
    // a conflict is how writers find out about each other, and 404 a response
    const failed = code === '<error>' || (Number(code) >= 400 && code !== '404' && code !== '409');
    this.#requests.record(`${verb} ${resource}`, { failed, seconds });
    this.#apiServer.record(code);
  };

  /** For the calls to the driver. */
  readonly onCall: CallObserver = (call) => this.#calls.begin(call);

  /** Metrics that also count what the page shows of the last hour. */
  counting<T extends { controller: ControllerMetrics; journal: JournalMetrics | undefined }>(metrics: T): T {
    const { controller, journal } = metrics;
    const hour = this.#hour;
    return {
      ...metrics,
      controller: {
        ...controller,
        provisioned: (labels, seconds) => {
          hour.count('made');
          controller.provisioned(labels, seconds);
        },
        provisionFailed: (labels) => {
          hour.count('failed');
          controller.provisionFailed(labels);
        },
        deleted: (labels, seconds) => {
          hour.count('deleted');
          controller.deleted(labels, seconds);
        },
        deleteFailed: (labels) => {
          hour.count('deletionsFailed');
          controller.deleteFailed(labels);
        },
      },
      journal: journal && {
        ...journal,
        isProtected: (value) => {
          this.#isJournalRefused = !value;
          journal.isProtected(value);
        },
      },
    };
  }

  /** @param whom - this standby waits for, where that is not simply the leader. */
  waits(whom: string): void {
    this.#role = { ...this.#role, waitsFor: whom };
  }

  /** This instance works from now on. */
  works(): void {
    this.#hour.begin();
    const name = this.#role.name === 'alone' ? 'alone' : 'leader';
    this.#role = { name, sinceMs: this.#options.clock.wallMs() };
  }

  /** The controller whose claims are shown. @param nodes - what explains claims that may only be on some. */
  follow(controller: ControllerStatus, nodes?: NodeInformers): void {
    this.#controller = controller;
    this.#nodes = nodes;
  }

  /** What does not fit this sidecar is shown. */
  checks(misfits: ClusterMisfits): void {
    this.#misfits = misfits;
  }

  /** The audits that are shown; the object goes on changing. */
  audits(state: AuditState): void {
    this.#audits = state;
  }

  page(parts: KnownParts): StatusPage {
    this.#hour.sampleEvery(() => this.#countWaiting(parts));
    return new StatusPage({
      ...this.#options,
      collect: ({ delay }) => this.#collect(parts, delay),
      explain: (claim) => this.#explain(parts, claim),
    });
  }

  #explain({ ready }: KnownParts, claim: string): Explanation | undefined {
    const waiting = this.#controller?.waitingClaim(claim);
    const { nodes, csiNodes } = this.#nodes ?? {};
    const isKnown = nodes?.hasSynced === true && csiNodes?.hasSynced === true;
    return (
      waiting &&
      explainOwnClaim(waiting, {
        nowMs: this.#options.clock.wallMs(),
        unreadiness: ready.unhealthyReason,
        nodes: isKnown ? { nodes: nodes.list(), csiNodes: csiNodes.list() } : undefined,
      })
    );
  }

  async #collect({ driver, ready }: KnownParts, delay: StatusReport['process']['delay']): Promise<StatusReport> {
    const { clock } = this.#options;
    const controller = this.#controller;
    const work = controller && (await this.#work(controller));
    if (work !== undefined && ready.unhealthyReason === undefined) this.#hour.sawWaiting(work.claims.length);
    return {
      atMs: clock.wallMs(),
      program: { version, host: os.hostname(), startedAtMs: this.#startedAtMs },
      driver: {
        name: driver.name,
        version: driver.vendorVersion,
        connected: driver.connected,
        capabilities: Object.entries(driver.capabilities).flatMap(([name, has]) => (has ? [constantCase(name)] : [])),
      },
      role: this.#role,
      unhealthyReason: ready.unhealthyReason,
      apiServer: { failingSinceMs: this.#apiServer.failingSinceMs },
      work,
      lastHour: controller && this.#hour.report(),
      audit: this.#audits && reportedAudit(this.#audits, clock.wallMs()),
      calls: this.#calls.list(),
      requests: this.#requests.list(),
      process: { ...this.#eventLoop(), ...memory(), delay },
    };
  }

  async #work(controller: ControllerStatus): Promise<NonNullable<StatusReport['work']>> {
    const { workerThreads } = this.#options.config.provisioning;
    const released = await releasedVolumes(controller);
    const { phases, waits } = await recordedWork(controller, {
      sharing: released.sharing,
      isJournalRefused: this.#isJournalRefused,
    });
    return {
      claims: await waitingClaims(controller),
      // volumes are saved by workers of their own
      queues: controller
        .queues()
        .map((queue) => (queue.name === 'unsavedpvs' ? queue : { ...queue, workers: workerThreads })),
      phases,
      released,
      waits,
      isJournalRefused: this.#isJournalRefused,
      misfits: (await this.#misfits?.list()) ?? [],
    };
  }

  /** Undefined: the caches are not known to be complete. */
  async #countWaiting({ ready }: Pick<KnownParts, 'ready'>): Promise<number | undefined> {
    const controller = this.#controller;
    if (controller === undefined || ready.unhealthyReason !== undefined) return undefined;
    let count = 0;
    for (const claim of controller.waitingClaims()) {
      if (claim !== undefined) count += 1;
      if (sliceSpent()) await nextSlice();
    }
    return count;
  }

  /** Ends what is counted; safe to repeat. */
  [Symbol.dispose](): void {
    this.#hour[Symbol.dispose]();
  }

  #eventLoop(): Pick<StatusReport['process'], 'busy' | 'busyOverSeconds' | 'busySinceStart'> {
    const now = performance.eventLoopUtilization();
    const nowMs = this.#options.clock.monotonicMs();
    const busyOverSeconds = (nowMs - this.#lastReportMs) / 1000;
    const { utilization: busy } = performance.eventLoopUtilization(now, this.#lastUtilization);
    this.#lastUtilization = now;
    this.#lastReportMs = nowMs;
    return { busy, busyOverSeconds, busySinceStart: now.utilization };
  }
}

/** Oldest first, then by name. Goes through all claims of the cluster, in slices. */
async function waitingClaims(controller: ControllerStatus): Promise<ReportedClaim[]> {
  const claims: ReportedClaim[] = [];
  for (const claim of controller.waitingClaims()) {
    if (claim !== undefined) claims.push(reported(claim));
    if (sliceSpent()) await nextSlice();
  }
  const order = ({ createdAt, namespace, name }: ReportedClaim): string => `${createdAt} ${namespace}/${name}`;
  return claims.sort((a, b) => compareBytes(order(a), order(b)));
}

function reported({ wait, ...claim }: ClaimProgress): ReportedClaim {
  return wait === undefined ? claim : { ...claim, wait };
}

function memory(): Pick<StatusReport['process'], 'residentBytes' | 'heapUsedBytes'> {
  const { rss, heapUsed } = process.memoryUsage();
  return { residentBytes: rss, heapUsedBytes: heapUsed };
}

/** `createDeleteVolume` as the CSI specification writes it: `CREATE_DELETE_VOLUME`. */
function constantCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

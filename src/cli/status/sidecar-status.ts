/** Collects what the status page shows. What is counted as it happens is bounded; the rest is read when somebody looks. */
import os from 'node:os';
import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Clock } from '../../base/clock.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import type { Driver } from '../../csi/driver.ts';
import type { CallObserver } from '../../csi/unary-call.ts';
import { RecentCalls } from '../../diagnostics/status-page/recent-calls.ts';
import { StatusPage } from '../../diagnostics/status-page/status-page.ts';
import type { ReportedClaim, ReportedPhase, StatusReport } from '../../diagnostics/status-page/status-report.ts';
import { explainOwnClaim } from '../../explain/explain-own-claim.ts';
import type { Explanation } from '../../explain/explanation.ts';
import type { RequestObservation } from '../../kube/client/request.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';
import type { Health } from '../../run/health.ts';
import type { Config } from '../config.ts';
import { version } from '../version.ts';
import { CallsInFlight } from './calls-in-flight.ts';

/** What is known once the endpoint starts. */
interface KnownParts {
  driver: Pick<Driver, 'name' | 'vendorVersion' | 'connected' | 'capabilities'>;
  ready: Pick<Health, 'unhealthyReason'>;
}

export class SidecarStatus {
  readonly #options: { config: Pick<Config, 'leaderElection' | 'nodeDeployment'>; clock: Clock; logger: Logger };
  readonly #requests: RecentCalls;
  readonly #calls: CallsInFlight;
  readonly #startedAtMs: number;
  #role: StatusReport['role'];
  #controller: ControllerStatus | undefined;
  #lastUtilization: EventLoopUtilization = performance.eventLoopUtilization();
  #lastReportMs: number;

  constructor(options: { config: Config; clock: Clock; logger: Logger }) {
    const { config, clock } = options;
    this.#options = options;
    this.#requests = new RecentCalls(clock);
    this.#calls = new CallsInFlight({ clock, requests: this.#requests });
    this.#startedAtMs = clock.wallMs();
    const elects = config.leaderElection !== null && config.nodeDeployment === null;
    this.#role = { name: elects ? 'standby' : 'alone', sinceMs: this.#startedAtMs };
    this.#lastReportMs = clock.monotonicMs();
  }

  /** For the transports of Kubernetes. */
  readonly onRequest = ({ verb, resource, code, seconds }: RequestObservation): void => {
    // a conflict is how writers find out about each other, and 404 an answer
    const failed = code === '<error>' || (Number(code) >= 400 && code !== '404' && code !== '409');
    this.#requests.record(`${verb} ${resource}`, { failed, seconds });
  };

  /** For the calls to the driver. */
  readonly onCall: CallObserver = (call) => this.#calls.begin(call);

  /** This instance works from now on. */
  works(): void {
    const name = this.#role.name === 'alone' ? 'alone' : 'leader';
    this.#role = { name, sinceMs: this.#options.clock.wallMs() };
  }

  /** The controller whose claims are shown. */
  follow(controller: ControllerStatus): void {
    this.#controller = controller;
  }

  page(parts: KnownParts): StatusPage {
    return new StatusPage({
      ...this.#options,
      collect: ({ delay }) => this.#collect(parts, delay),
      explain: (claim) => this.#explain(claim),
    });
  }

  #explain(claim: string): Explanation | undefined {
    const waiting = this.#controller?.waitingClaim(claim);
    return waiting && explainOwnClaim(waiting, this.#options.clock.wallMs());
  }

  async #collect({ driver, ready }: KnownParts, delay: StatusReport['process']['delay']): Promise<StatusReport> {
    const { clock } = this.#options;
    const controller = this.#controller;
    const work = controller && {
      claims: await waitingClaims(controller),
      queues: controller.queues(),
      phases: await phases(controller),
    };
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
      work,
      calls: this.#calls.list(),
      requests: this.#requests.list(),
      process: { ...this.#eventLoop(), ...memory(), delay },
    };
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

/** Oldest first. Goes through all claims of the cluster, in slices. */
async function waitingClaims(controller: ControllerStatus): Promise<ReportedClaim[]> {
  const claims: ReportedClaim[] = [];
  for (const claim of controller.waitingClaims()) {
    if (claim !== undefined) claims.push(claim);
    if (sliceSpent()) await nextSlice();
  }
  return claims.sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
}

async function phases(controller: ControllerStatus): Promise<ReportedPhase[]> {
  const found = new Map<string, ReportedPhase>();
  for (const { phase, claim, createdAt, problem } of controller.openIntents()) {
    if (sliceSpent()) await nextSlice();
    const { count, oldest } = found.get(phase) ?? { count: 0, oldest: undefined };
    const isOldest = oldest === undefined || createdAt < oldest.createdAt;
    const own = { claim: `${claim.namespace}/${claim.name}`, createdAt, ...(problem !== undefined && { problem }) };
    found.set(phase, { phase, count: count + 1, oldest: isOldest ? own : oldest });
  }
  return [...found.values()];
}

function memory(): Pick<StatusReport['process'], 'residentBytes' | 'heapUsedBytes'> {
  const { rss, heapUsed } = process.memoryUsage();
  return { residentBytes: rss, heapUsedBytes: heapUsed };
}

/** `createDeleteVolume` as the CSI specification writes it: `CREATE_DELETE_VOLUME`. */
function constantCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

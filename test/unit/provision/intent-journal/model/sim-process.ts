/** One run of the program: the real controller and the real journal, on the simulated outside. */
import { KubeClient } from '../../../../../src/kube/client/kube-client.ts';
import type { Permit } from '../../../../../src/base/permit.ts';
import type { Logger } from '../../../../../src/base/logger.ts';
import { ExponentialLimiter } from '../../../../../src/kube/queue/rate-limiter.ts';
import type { RequestOptions } from '../../../../../src/kube/client/request.ts';
import { clusterJournal } from '../../../../../src/provision/intent-journal/cluster-journal.ts';
import type { IntentJournal } from '../../../../../src/provision/intent-journal/intent-journal.ts';
import type { transitions } from '../../../../../src/provision/intents/intent-state.ts';
import { claimUid, selectedNode } from '../../../../../src/provision/claim-fields.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../../../../src/provision/objects.ts';
import { ProvisionController } from '../../../../../src/provision/provision-controller.ts';
import { ManualClock } from '../../../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../../../support/fakes/recorded-logger.ts';
import type { Api } from './api.ts';
import type { Backend } from './backend.ts';
import type { Caller, Network } from './network.ts';
import { argsOf, driverName, type Looks, SimProvisioner, type SimProvisionerOptions } from './sim-provisioner.ts';
import { SimTransport, type WatchLine } from './sim-transport.ts';

/** One guard each that is broken from outside. */
export interface BrokenGuards {
  /** What a process is shown instead of a response of the API server. */
  shown?: (options: RequestOptions, answer: unknown) => unknown;
  /** What it sends instead of a body. */
  sent?: (options: RequestOptions) => unknown;
  /** Events of its watches that never arrive. */
  hides?: (options: RequestOptions, event: WatchLine) => boolean;
  /** @param version - that of the API server as it is then. */
  journal?: (journal: IntentJournal, version: () => string) => IntentJournal;
  maxCallMs?: number;
  believesFirstFinal?: boolean;
  /**
   * A request that was sent is not repeated unchanged: each attempt has the arguments that class and claim imply then.
   */
  plansAnew?: boolean;
  /** A process that goes on after a pause sends what it was about to send. */
  noPermit?: boolean;
  /** Transitions between the states of an intent that are other ones. */
  transitions?: Partial<typeof transitions>;
  /** Nobody knows what a stalled backend has read. */
  noProgress?: boolean;
  /** All claims of a name have the same UID, and therefore volumes of the same name. */
  repeatsUids?: boolean;
}

export interface SimProcessOptions {
  api: Api;
  backend: Backend;
  network: Network;
  /** How long a call to the backend may take, in milliseconds. */
  maxCallMs: number;
  /** The first pause before a volume is saved again, in milliseconds. */
  savePauseMs: number;
  hasSource: boolean;
  /** One process at a time, by leader election. */
  election: boolean;
  onDelete: SimProvisionerOptions['onDelete'];
  onNeedlessRequest: SimProvisionerOptions['onNeedlessRequest'];
  /** A number that rises with everything that happens. */
  tick: () => number;
  broken: BrokenGuards;
  /** Of all processes. */
  lines: LogLine[];
  writer: string;
  /** Of the volumes' names. */
  prefix: string;
}

/** Renewals of the lease may fail for so long, in milliseconds. */
const renewDeadlineMs = 10_000;

/** The arguments that the volume of a claim would have now; undefined: the claim is gone. */
function argsNow(api: Api, volumeName: string): string | undefined {
  const claims = api.all<PersistentVolumeClaim>('persistentvolumeclaims');
  const claim = claims.find((each) => volumeName.endsWith(`-${claimUid(each)}`));
  const storageClass = api.find<StorageClass>('storageclasses', claim?.spec.storageClassName ?? '');
  return claim && storageClass && argsOf(storageClass, selectedNode(claim));
}

const always: Permit = { isValid: true, renewed: () => Promise.resolve() };

export class SimProcess implements Caller {
  alive = true;
  paused = false;
  /** How long it is paused, in milliseconds. */
  pausedMs = 0;
  /** Another process has begun to lead meanwhile. */
  overtaken = false;
  /** Ending, and doing nothing new. */
  stopping = false;
  readonly clock: ManualClock;
  readonly transport: SimTransport;
  /** What the run ended with. */
  failure: Error | undefined;
  readonly #controller: ProvisionController;
  readonly #stop = new AbortController();
  readonly #abort = new AbortController();
  readonly #network: Network;
  /** By its own clock. */
  #leaseRenewedAtMs = 0;
  #looks: Looks = { volumes: {}, claim: 0 };

  constructor(options: SimProcessOptions) {
    const { network, maxCallMs, savePauseMs, broken, tick } = options;
    const common = { ...options, caller: this, ...broken };
    this.clock = new ManualClock({ turns: 1, wallMs: Date.UTC(2026, 0, 1) + network.nowMs });
    const { clock } = this;
    this.transport = new SimTransport({
      ...common,
      clock,
      onLook: (at, name) => {
        const { volumes } = this.#looks;
        this.#looks =
          at === 'claim' ? { volumes, claim: tick() } : { ...this.#looks, volumes: { ...volumes, [name]: tick() } };
      },
    });
    const transport = this.transport.asTransport;
    const logger: Logger = recordedLogger(options.lines);
    const client = new KubeClient({ transport, fieldManager: driverName });
    const journal = clusterJournal({
      client,
      namespace: 'ns',
      lockName: driverName,
      isKnownProvisioner: (name) => name === driverName,
      exclusive: options.election,
      clock,
      logger,
      writer: options.writer,
    });
    this.#network = network;
    this.#controller = new ProvisionController({
      permit: broken.noPermit === true ? always : options.election ? this.#leaderPermit() : journal.permit,
      provisionerName: driverName,
      provisioner: new SimProvisioner({
        ...common,
        clock,
        limitMs: maxCallMs,
        looks: () => this.#looks,
        argsNow: broken.plansAnew === true ? (name) => argsNow(options.api, name) : undefined,
      }),
      transport,
      clock,
      logger,
      recorder: { event: () => undefined },
      volumeName: ({ metadata: { uid = '' } }) => `${options.prefix}-${uid}`,
      intentJournal: broken.journal?.(journal, () => options.api.version) ?? journal,
      maxCallMs: broken.maxCallMs ?? maxCallMs,
      saveLimiter: new ExponentialLimiter({ baseMs: savePauseMs, maxMs: 60_000 }),
    });
    const ended = this.#controller.run({ stop: this.#stop.signal, abort: this.#abort.signal });
    void ended
      .catch((error: unknown) => {
        this.failure = error as Error;
      })
      .finally(() => {
        this.alive = false;
      });
  }

  /** Time passes. */
  async advance(ms: number): Promise<void> {
    if (this.paused) {
      this.pausedMs += ms;
      return;
    }
    await this.clock.advance(ms);
    this.#leaseRenewedAtMs = this.clock.monotonicMs();
  }

  pause(): void {
    this.paused = true;
    this.pausedMs = 0;
    this.transport.holdWatches();
  }

  /** It gets what came meanwhile before its timers fire. */
  async goOn(settle: () => Promise<void>): Promise<void> {
    this.paused = false;
    this.clock.skip(this.pausedMs);
    this.#network.deliverTo(this);
    this.transport.releaseWatches();
    await settle();
    if (this.overtaken) this.loseLease();
    await this.clock.advance(0);
    this.#leaseRenewedAtMs = this.clock.monotonicMs();
  }

  #leaderPermit(): Permit {
    const isValid = (): boolean => this.clock.monotonicMs() - this.#leaseRenewedAtMs <= renewDeadlineMs;
    return {
      get isValid() {
        return isValid();
      },
      renewed: () => {
        if (this.overtaken) return Promise.reject(new Error('the lease is lost'));
        this.#leaseRenewedAtMs = this.clock.monotonicMs();
        return Promise.resolve();
      },
    };
  }

  stop(): void {
    this.stopping = true;
    this.#stop.abort(new Error('stopped'));
  }

  /** The lease is lost: no request leaves it any more. */
  loseLease(): void {
    this.stopping = true;
    const reason = new Error('the lease is lost');
    this.transport.fence(reason);
    this.#abort.abort(reason);
  }

  /** Names of the volumes whose record is open. */
  openNames(): string[] {
    return [...this.#controller.status.openIntents()].map(({ volume }) => volume);
  }
}

/** A recoverable provisioner over the backend of the test; what its failures mean is what a CSI provisioner makes of them. */
import type { Clock } from '../../../../../src/base/clock.ts';
import { type Permit, whenPermitted } from '../../../../../src/base/permit.ts';
import { CallProgress } from '../../../../../src/csi/call-progress.ts';
import type {
  BackendProgress,
  FulfilContext,
  Plan,
  Recoverable,
  RevokeContext,
} from '../../../../../src/provision/recoverable.ts';
import type { PersistentVolume } from '../../../../../src/provision/objects.ts';
import {
  ProvisionError,
  type ProvisionContext,
  type ProvisionOptions,
} from '../../../../../src/provision/provisioner.ts';
import { type Backend, BackendError, type BackendVolume } from './backend.ts';
import type { Caller, Network } from './network.ts';

export const driverName = 'drv';

/** When a process last looked at volumes and at a claim, as numbers that rise with everything that happens. */
export interface Looks {
  /** By the name of the volume that it looked for. */
  volumes: Readonly<Record<string, number>>;
  claim: number;
}

export interface SimProvisionerOptions {
  backend: Backend;
  network: Network;
  caller: Caller;
  /** How long a call may take, in milliseconds. */
  limitMs: number;
  /** Called at the backend just before a volume is deleted. */
  onDelete: (handle: string, purpose: 'reclaim' | 'revoke', looks: Looks) => void;
  /** When the process last looked. */
  looks: () => Looks;
  /** For a provisioner that ignores its plan: the arguments that the volume of the claim would have now. */
  argsNow?: ((volumeName: string) => string | undefined) | undefined;
  /** A provisioner that takes every final answer for a proof that nothing is left. */
  believesFirstFinal?: boolean;
  clock: Clock;
  /** Volumes have a source, which is held until their storage is known. */
  hasSource: boolean;
  /** A provisioner that does not know what the backend has read. */
  noProgress?: boolean;
  /** Called when it is asked to look for storage that its only request so far has named. */
  onNeedlessRequest: (volumeName: string) => void;
}

type SimPlan = { name: string; args: string; node: string };

/** The arguments of a volume: the class, and the node that is selected for the claim. */
export function argsOf({ parameters }: { parameters?: Record<string, string> | undefined }, node: string): string {
  return `${parameters?.['args'] ?? ''} on ${node}`;
}

/** Nothing came back: the call was given up, or its connection broke. */
class LostError extends BackendError {
  readonly why: 'timeout' | 'broken';

  constructor(why: 'timeout' | 'broken') {
    super('DeadlineExceeded');
    this.why = why;
  }
}

export class SimProvisioner implements Recoverable {
  readonly progress: BackendProgress | undefined;
  readonly #options: SimProvisionerOptions;
  readonly #calls: CallProgress;
  /** What was requested by volume name: the handle that came back, and whether all requests had a clear result. */
  readonly #requested = new Map<string, { handle?: string; isClear: boolean }>();

  constructor(options: SimProvisionerOptions) {
    this.#options = options;
    const { clock, noProgress = false } = options;
    const never = new AbortController().signal;
    const check = (): Promise<unknown> => this.#call('GetPluginInfo', () => null, never).catch(() => undefined);
    this.#calls = new CallProgress({ clock, check });
    this.progress = noProgress ? undefined : this.#calls;
  }

  plan({ volumeName: name, storageClass, selectedNodeName: node }: ProvisionOptions): Promise<Plan> {
    return Promise.resolve({ name, args: argsOf(storageClass, node), node } satisfies SimPlan);
  }

  async fulfil(given: Plan, context: FulfilContext): Promise<PersistentVolume> {
    const plan = given as SimPlan;
    const { name } = plan;
    const { handle, unfit } = await this.#create(plan, context);
    context.created?.(handle);
    if (unfit) {
      await this.#deleteProved(handle, context);
      throw new ProvisionError('too small', { state: 'in-background', afterUnclear: 'absent' });
    }
    return { metadata: { name }, spec: { csi: { driver: driverName, volumeHandle: handle } } };
  }

  async revoke(given: Plan, context: RevokeContext): Promise<void> {
    const plan = given as SimPlan;
    const { name } = plan;
    const { handle: known, isClear = false } = this.#requested.get(name) ?? {};
    if (context.handle === undefined && known !== undefined && isClear) this.#options.onNeedlessRequest(name);
    const found = context.handle ?? (await this.#create(plan, context)).handle;
    await this.#deleteProved(found, context);
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  holds(): boolean {
    return this.#options.hasSource;
  }

  async #deleteProved(handle: string, context: FulfilContext | RevokeContext): Promise<void> {
    const { permit, signal } = context;
    for (;;) {
      await context.beforeDelete(handle);
      if (permit === undefined || permit.isValid) break;
      await permit.renewed(signal);
    }
    await this.#delete(handle, 'revoke', signal);
  }

  storageKeys({ spec: { csi } }: PersistentVolume): readonly string[] {
    return csi?.driver === driverName ? [csi.volumeHandle] : [];
  }

  handleKey(handle: string): string {
    return handle;
  }

  async delete({ spec: { csi } }: PersistentVolume, { permit, signal }: ProvisionContext): Promise<void> {
    await whenPermitted(permit, signal, () => this.#delete(csi?.volumeHandle ?? '', 'reclaim', signal));
  }

  async #create(
    { name, args: planned, node }: SimPlan,
    { permit, signal }: { permit?: Permit | undefined; signal: AbortSignal },
  ): Promise<BackendVolume> {
    const { backend, network, argsNow, believesFirstFinal = false } = this.#options;
    const args = argsNow?.(name) ?? planned;
    const { handle: known, isClear: wasClear = true } = this.#requested.get(name) ?? {};
    const made = whenPermitted(permit, signal, () => {
      const sentAtMs = network.nowMs;
      this.#requested.set(name, { ...(known !== undefined && { handle: known }), isClear: false });
      const create = (): BackendVolume => backend.create(name, args, this.#latestBeginMs(sentAtMs));
      return this.#call(`CreateVolume ${name}`, create, signal);
    });
    made.then(
      ({ handle }) => this.#requested.set(name, { handle, isClear: wasClear }),
      () => undefined,
    );
    return made.catch((error: unknown) => {
      if (error instanceof BackendError)
        throw provisionError(error, { believesFirstFinal, mayReschedule: node !== '' });
      throw error;
    });
  }

  #delete(handle: string, purpose: 'reclaim' | 'revoke', signal: AbortSignal): Promise<void> {
    const { backend, onDelete } = this.#options;
    const looks = this.#options.looks();
    const execute = (): void => {
      onDelete(handle, purpose, looks);
      backend.delete(handle);
    };
    return this.#call(`DeleteVolume ${handle} (${purpose})`, execute, signal).catch((error: unknown) => {
      if (error instanceof BackendError)
        throw new ProvisionError(error.message, { state: 'in-background', cause: error });
      throw error;
    });
  }

  /**
   * The latest time at which the backend may begin a call. One that was given up more than a second before a stalled backend resumed may
   * take as long as a new one.
   */
  #latestBeginMs(sentAtMs: number): number {
    const { network, caller, limitMs } = this.#options;
    const { wentOnAtMs } = network;
    if (sentAtMs >= wentOnAtMs) return sentAtMs;
    const hasTime = caller.alive && wentOnAtMs - sentAtMs > limitMs + 1000;
    return wentOnAtMs + (hasTime ? limitMs : 0);
  }

  async #call<T>(what: string, execute: () => T, signal: AbortSignal): Promise<T> {
    const { network, caller, limitMs, clock } = this.#options;
    const lost = (why: 'timeout' | 'broken'): Error => new LostError(why);
    const sentAtMs = clock.monotonicMs();
    const request = { caller, what, limitMs, execute, lost, survivesBreak: false, toBackend: true, signals: [signal] };
    try {
      const value = await network.send(request);
      this.#calls.responded(sentAtMs);
      return value;
    } catch (error) {
      const isGivenUp = error instanceof LostError ? error.why === 'timeout' : !(error instanceof BackendError);
      if (error instanceof BackendError && !(error instanceof LostError)) this.#calls.responded(sentAtMs);
      if (isGivenUp && what.startsWith('CreateVolume')) this.#calls.givenUp();
      throw error;
    }
  }
}

function provisionError(
  error: BackendError,
  { believesFirstFinal, mayReschedule }: { believesFirstFinal: boolean; mayReschedule: boolean },
): ProvisionError {
  const { code, message } = error;
  if (code === 'Aborted' || code === 'DeadlineExceeded')
    return new ProvisionError(message, { state: 'in-background', cause: error });
  const evidence = {
    ResourceExhausted: 'absent-if-repeated',
    AlreadyExists: 'undecidable',
    Internal: 'nothing',
  } as const;
  const afterUnclear = believesFirstFinal ? 'absent' : evidence[code];
  const state = code === 'ResourceExhausted' && mayReschedule ? 'reschedule' : 'finished';
  return new ProvisionError(message, { state, afterUnclear, cause: error });
}

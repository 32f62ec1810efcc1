import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { ProvisionError, type ProvisionContext, type ProvisionOptions } from '../../../src/provision/provisioner.ts';
import type { FulfilContext, Plan, Recoverable, RevokeContext } from '../../../src/provision/recoverable.ts';
import { madeVolume } from './scripted-provisioner.ts';

/** What the backend has made for one name. */
export interface Storage {
  handle: string;
  /** Of the plan that it was made from. */
  parameters: unknown;
}

/** What one call of `fulfil` does: throw, or answer. */
export type FulfilStep = Error | ((plan: ScriptedPlan, context: FulfilContext) => Promise<PersistentVolume>);
/** What one call of `revoke` does. */
export type RevokeStep = Error | ((plan: ScriptedPlan, context: RevokeContext) => Promise<void>);

export type ScriptedPlan = Plan & { name: string; parameters: unknown; node?: string };

/**
 * A `Recoverable` provisioner with storage that it keeps by name. Calls follow a script, and are served when nothing more
 * was said. Handles are `handle-<name>`, for storage that is made again with a number.
 */
export class ScriptedBackend implements Recoverable {
  readonly storage = new Map<string, Storage>();
  readonly plans: ScriptedPlan[] = [];
  readonly fulfils: { plan: ScriptedPlan; mayExist: boolean }[] = [];
  readonly revokes: { plan: ScriptedPlan; handle: string | undefined }[] = [];
  /** Plans that were released. */
  readonly released: Plan[] = [];
  /** Handles in the order in which their storage was deleted. */
  readonly deleted: string[] = [];
  readonly planSteps: Error[] = [];
  readonly fulfilSteps: FulfilStep[] = [];
  readonly revokeSteps: RevokeStep[] = [];
  /** What calls beyond the steps do. */
  otherwiseFulfil: FulfilStep = ({ name, parameters }) => Promise.resolve(this.make(name, parameters));
  otherwiseRevoke: RevokeStep = (plan, context) => this.undo(plan, context);
  declare shouldProvision?: NonNullable<Recoverable['shouldProvision']>;
  declare isElsewhere?: NonNullable<Recoverable['isElsewhere']>;
  /** Whether each plan has a source, which is held until it is released. */
  hasSource = false;
  /** Whether `fulfil` names the storage as soon as it is made. */
  namesStorage = true;
  /** How often each name was made. */
  readonly #made = new Map<string, number>();

  /** Makes the storage of a name, or finds it. */
  make(name: string, parameters?: unknown): PersistentVolume {
    const { handle } = this.storage.get(name) ?? this.#add(name, parameters);
    return madeVolume(name, { csi: { driver: 'drv', volumeHandle: handle } });
  }

  #add(name: string, parameters: unknown): Storage {
    const times = (this.#made.get(name) ?? 0) + 1;
    this.#made.set(name, times);
    const storage = { handle: `handle-${name}${times === 1 ? '' : `-${times}`}`, parameters };
    this.storage.set(name, storage);
    return storage;
  }

  /** Finds the storage, or makes it, and deletes it. */
  async undo({ name, parameters }: ScriptedPlan, context: RevokeContext): Promise<void> {
    const found = context.handle ?? this.make(name, parameters).spec.csi?.volumeHandle ?? '';
    await context.beforeDelete(found);
    this.deleteStorage(found);
  }

  deleteStorage(handle: string): void {
    this.deleted.push(handle);
    for (const [name, storage] of this.storage) if (storage.handle === handle) this.storage.delete(name);
  }

  delete({ spec }: PersistentVolume): Promise<void> {
    this.deleteStorage(spec.csi?.volumeHandle ?? '');
    return Promise.resolve();
  }

  plan({ volumeName, storageClass, selectedNodeName: node }: ProvisionOptions): Promise<Plan> {
    const error = this.planSteps.shift();
    if (error !== undefined) return Promise.reject(error);
    const plan: ScriptedPlan = {
      name: volumeName,
      parameters: storageClass.parameters ?? {},
      ...(node !== '' && { node }),
    };
    this.plans.push(plan);
    return Promise.resolve(plan);
  }

  async fulfil(given: Plan, context: FulfilContext): Promise<PersistentVolume> {
    const plan = given as ScriptedPlan;
    this.fulfils.push({ plan, mayExist: context.mayExist });
    const step = this.fulfilSteps.shift() ?? this.otherwiseFulfil;
    if (step instanceof Error) throw step;
    const made = await step(plan, context);
    if (this.namesStorage) context.created?.(made.spec.csi?.volumeHandle ?? '');
    return made;
  }

  async revoke(given: Plan, context: RevokeContext): Promise<void> {
    const plan = given as ScriptedPlan;
    this.revokes.push({ plan, handle: context.handle });
    const step = this.revokeSteps.shift() ?? this.otherwiseRevoke;
    if (step instanceof Error) throw step;
    await step(plan, context);
  }

  /** In-tree volumes of the kind `gcePersistentDisk` are storage of this backend, too. */
  storageKeys({ spec }: PersistentVolume): readonly string[] {
    const disk = spec['gcePersistentDisk'] as { pdName: string } | undefined;
    const key = spec.csi?.driver === 'drv' ? spec.csi.volumeHandle : disk?.pdName;
    return key === undefined ? [] : [key];
  }

  handleKey(handle: string): string {
    return handle;
  }

  holds(): boolean {
    return this.hasSource;
  }

  release(plan: Plan, _context: ProvisionContext): Promise<void> {
    this.released.push(plan);
    return Promise.resolve();
  }
}

/** The backend does not answer in time, and makes the storage all the same. */
export function lateAnswer(backend: ScriptedBackend): FulfilStep {
  return ({ name, parameters }) => {
    backend.make(name, parameters);
    return Promise.reject(unclear());
  };
}

export const unclear = (message = 'no answer'): ProvisionError =>
  new ProvisionError(message, { state: 'in-background' });
export const noRoom = (state: 'finished' | 'reschedule' = 'reschedule'): ProvisionError =>
  new ProvisionError('no room', { state, afterUnclear: 'absent-if-repeated' });
export const final = (message = 'refused'): ProvisionError => new ProvisionError(message, { state: 'finished' });
export const neverSent = (message = 'not connected'): ProvisionError =>
  new ProvisionError(message, { state: 'no-change' });
export const undecidable = (message = 'other arguments'): ProvisionError =>
  new ProvisionError(message, { state: 'finished', afterUnclear: 'undecidable' });

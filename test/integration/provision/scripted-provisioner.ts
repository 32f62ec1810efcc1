import { EventEmitter } from 'node:events';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import type { ProvisionContext, ProvisionOptions, Provisioner } from '../../../src/provision/provisioner.ts';

/** What one call of `provision` does: throw, or answer. */
export type ProvisionStep = Error | ((options: ProvisionOptions, context: ProvisionContext) => Answer);
type Answer = PersistentVolume | Promise<PersistentVolume>;

/** What one call of `delete` does. */
export type DeleteStep = Error | ((volume: PersistentVolume, context: ProvisionContext) => void | Promise<void>);

/** The optional methods; what is absent is absent on the provisioner, too. */
export type OptionalMethods = Pick<
  Provisioner,
  | 'shouldProvision'
  | 'claimAnnotations'
  | 'supportsBlock'
  | 'shouldDelete'
  | 'ownsSource'
  | 'storageKeys'
  | 'handlesSharedStorage'
  | 'forget'
>;

/** A call of `provision` as it came. */
export interface ProvisionCall extends ProvisionOptions {
  atMs: number;
  signal: AbortSignal;
}

/** A volume like those a CSI provisioner returns. */
export function madeVolume(name: string, spec: Partial<PersistentVolume['spec']> = {}): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: 'drv', volumeHandle: `handle-${name}` },
      ...spec,
    },
  };
}

/** A provisioner that follows a script, call by call, and succeeds when nothing more was said. */
export class ScriptedProvisioner extends EventEmitter<{ call: [] }> implements Provisioner {
  readonly provisions: ProvisionCall[] = [];
  readonly deletions: PersistentVolume[] = [];
  readonly provisionSteps: ProvisionStep[] = [];
  readonly deleteSteps: DeleteStep[] = [];
  /** What calls beyond the steps do. */
  otherwiseProvision: ProvisionStep = ({ volumeName }) => madeVolume(volumeName);
  otherwiseDelete: DeleteStep = () => undefined;
  declare readonly shouldProvision?: NonNullable<Provisioner['shouldProvision']>;
  declare readonly claimAnnotations?: NonNullable<Provisioner['claimAnnotations']>;
  declare readonly supportsBlock?: NonNullable<Provisioner['supportsBlock']>;
  declare readonly shouldDelete?: NonNullable<Provisioner['shouldDelete']>;
  declare readonly ownsSource?: NonNullable<Provisioner['ownsSource']>;
  declare readonly storageKeys?: NonNullable<Provisioner['storageKeys']>;
  declare readonly handlesSharedStorage?: NonNullable<Provisioner['handlesSharedStorage']>;
  declare readonly forget?: NonNullable<Provisioner['forget']>;
  readonly #nowMs: () => number;

  constructor(options: { nowMs: () => number; methods?: OptionalMethods }) {
    super();
    this.#nowMs = options.nowMs;
    Object.assign(this, options.methods);
  }

  async provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume> {
    this.provisions.push({ ...options, atMs: this.#nowMs(), signal: context.signal });
    this.emit('call');
    const step = this.provisionSteps.shift() ?? this.otherwiseProvision;
    if (step instanceof Error) throw step;
    return step(options, context);
  }

  async delete(volume: PersistentVolume, context: ProvisionContext): Promise<void> {
    this.deletions.push(volume);
    this.emit('call');
    const step = this.deleteSteps.shift() ?? this.otherwiseDelete;
    if (step instanceof Error) throw step;
    await step(volume, context);
  }
}

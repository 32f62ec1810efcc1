import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { ProvisionError, type ProvisionOptions, type Provisioner } from '../../../src/provision/provisioner.ts';
import type { SandboxClient } from '../../../sandbox/api/client.ts';
import { resource } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

interface SentVolume {
  origin: string;
  method: string;
  path: string;
  body: Buffer | null;
}

interface Entry {
  state: 'made' | 'deleted';
  /** The API server said to the controller that it has the volume. */
  saved: boolean;
}

/**
 * A backend that fails at random and writes down, by claim UID, what it made and deleted; what must never happen goes
 * into `violations`.
 */
export class LedgerProvisioner implements Provisioner, Disposable {
  readonly violations: string[] = [];
  readonly calls = { provision: 0, delete: 0, failed: 0 };
  readonly #entries = new Map<string, Entry>();
  #handed: WeakRef<object>[] = [];
  readonly #accepted = new WeakSet<SentVolume>();
  readonly #api: SandboxClient;
  readonly #random: () => number;
  readonly #origin: string;

  constructor(options: { api: SandboxClient; random: () => number; origin: string }) {
    this.#api = options.api;
    this.#random = options.random;
    this.#origin = options.origin;
    subscribe('undici:request:headers', this.#onHeaders);
    subscribe('undici:request:trailers', this.#onAnswer);
  }

  /** Claims whose storage exists. */
  get stored(): string[] {
    return [...this.#entries].filter(([, { state }]) => state === 'made').map(([uid]) => uid);
  }

  /** How many claims were ever served. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many of the cached objects that the controller handed out are still in memory. */
  get objectsAlive(): number {
    this.#handed = this.#handed.filter((each) => each.deref() !== undefined);
    return this.#handed.length;
  }

  provision({ claim, volumeName }: ProvisionOptions): Promise<PersistentVolume> {
    this.calls.provision++;
    this.#handed.push(new WeakRef(claim));
    const uid = claim.metadata.uid ?? '';
    const known = this.#entries.get(uid);
    if (known?.state === 'deleted') this.violations.push(`${uid}: provisioned after its storage was deleted`);
    if (known?.saved === true) this.violations.push(`${uid}: provisioned again after its volume was saved`);
    const luck = this.#random();
    if (luck < 0.05) return this.#fail(new ProvisionError('full', { state: 'finished' }));
    if (luck < 0.08) return this.#fail(new ProvisionError('unreachable', { state: 'no-change' }));
    if (known === undefined) this.#entries.set(uid, { state: 'made', saved: false });
    if (luck < 0.14) return this.#fail(new ProvisionError('slow', { state: 'in-background' }));
    return Promise.resolve(madeVolume(volumeName, { csi: { driver: 'drv', volumeHandle: uid } }));
  }

  delete(volume: PersistentVolume): Promise<void> {
    this.calls.delete++;
    this.#handed.push(new WeakRef(volume));
    const uid = volume.spec.csi?.volumeHandle ?? '';
    const entry = this.#entries.get(uid);
    const { namespace = '', name = '' } = volume.spec.claimRef ?? {};
    if (this.#api.get(resource.claims, { namespace, name })?.metadata.uid === uid) {
      this.violations.push(`${uid}: deleted while its claim is there`);
    }
    if (entry === undefined) this.violations.push(`${uid}: deleted but never made`);
    if (this.#random() < 0.08) return this.#fail(new Error('busy'));
    if (entry !== undefined) entry.state = 'deleted';
    return Promise.resolve();
  }

  [Symbol.dispose](): void {
    unsubscribe('undici:request:headers', this.#onHeaders);
    unsubscribe('undici:request:trailers', this.#onAnswer);
  }

  #fail(error: Error): Promise<never> {
    this.calls.failed++;
    return Promise.reject(error);
  }

  readonly #onHeaders = (message: unknown): void => {
    const { request, response } = message as { request: SentVolume; response: { statusCode: number } };
    if (response.statusCode === 201 || response.statusCode === 409) this.#accepted.add(request);
  };

  /** The controller knows that a volume is saved once it has the whole answer: 201, or 409 for one saved before. */
  readonly #onAnswer = (message: unknown): void => {
    const { request } = message as { request: SentVolume };
    if (!this.#accepted.has(request) || request.origin !== this.#origin || request.method !== 'POST') return;
    if (!request.path.startsWith('/api/v1/persistentvolumes')) return;
    const { spec } = JSON.parse(request.body?.toString() ?? '{}') as PersistentVolume;
    const entry = this.#entries.get(spec.csi?.volumeHandle ?? '');
    if (entry !== undefined) setImmediate(() => (entry.saved = true));
  };
}

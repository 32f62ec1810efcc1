import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, Subscription } from '../api/client.ts';
import { volumeProtectionFinalizer } from './annotations.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { getObject, keyOf, listObjects, subscribeTo, updateObject } from './object-access.ts';
import { resources, type Volume } from './objects.ts';

/** What a `VolumeProtection` needs. */
export interface VolumeProtectionOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
}

/** Keeps a deleted volume while it is bound (Kubernetes, "Storage Object in Use Protection"). */
export class VolumeProtection implements Disposable {
  readonly #client: SandboxClient;
  readonly #worker: KeyedWorker;
  #subscription: Subscription | undefined;

  constructor({ client, clock, logger }: VolumeProtectionOptions) {
    this.#client = client;
    this.#worker = new KeyedWorker({ name: 'volume-protection', clock, logger, sync: (name) => this.#sync(name) });
  }

  start(): void {
    this.#subscription = subscribeTo(this.#client, resources.volumes, ({ type, object }) => {
      if (type !== 'DELETED' && needsWrite(object)) this.#worker.add(keyOf(object));
    });
    for (const volume of listObjects(this.#client, resources.volumes)) {
      if (needsWrite(volume)) this.#worker.add(keyOf(volume));
    }
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#worker[Symbol.dispose]();
  }

  #sync(name: string): void {
    const volume = getObject(this.#client, resources.volumes, { name });
    if (volume === undefined || !needsWrite(volume)) return;
    updateObject(this.#client, resources.volumes, volume, ({ metadata }) => {
      const others = (metadata.finalizers ?? []).filter((finalizer) => finalizer !== volumeProtectionFinalizer);
      metadata.finalizers = metadata.deletionTimestamp === undefined ? [...others, volumeProtectionFinalizer] : others;
    });
  }
}

function needsWrite({ metadata, status }: Volume): boolean {
  const isProtected = metadata.finalizers?.includes(volumeProtectionFinalizer) ?? false;
  if (metadata.deletionTimestamp === undefined) return !isProtected;
  return isProtected && status?.phase !== 'Bound';
}

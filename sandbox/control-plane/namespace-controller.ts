import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, Subscription } from '../api/client.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { getObject, listObjects, subscribeTo } from './object-access.ts';
import { resources } from './objects.ts';
import { storedTypes } from './stored-types.ts';

/** What a `NamespaceController` needs. */
export interface NamespaceControllerOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
}

const contents = storedTypes().filter(({ namespaced }) => namespaced);

/** Empties namespaces that are being deleted and lets them go once nothing is left. */
export class NamespaceController implements Disposable {
  readonly #client: SandboxClient;
  readonly #worker: KeyedWorker;
  #subscription: Subscription | undefined;

  constructor({ client, clock, logger }: NamespaceControllerOptions) {
    this.#client = client;
    this.#worker = new KeyedWorker({ name: 'namespaces', clock, logger, sync: (name) => this.#sync(name) });
  }

  start(): void {
    this.#subscription = subscribeTo(this.#client, resources.namespaces, ({ type, object }) => {
      if (type !== 'DELETED' && object.metadata.deletionTimestamp !== undefined) this.#worker.add(object.metadata.name);
    });
    for (const { metadata } of listObjects(this.#client, resources.namespaces)) {
      if (metadata.deletionTimestamp !== undefined) this.#worker.add(metadata.name);
    }
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#worker[Symbol.dispose]();
  }

  #sync(name: string): void {
    const namespace = getObject(this.#client, resources.namespaces, { name });
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    const remaining = this.#deleteContents(name);
    if (remaining === 0) this.#client.finalizeNamespace(name);
    // What stays is held by finalizers or a running pod. A large namespace is checked less often.
    else this.#worker.addAfter(name, Math.min(50 + remaining / 10, 1000));
  }

  /** @returns how many objects are still there. */
  #deleteContents(namespace: string): number {
    let remaining = 0;
    for (const { ref } of contents) {
      for (const { metadata } of listObjects(this.#client, ref, { namespace })) {
        if (metadata.deletionTimestamp === undefined) this.#client.delete(ref, { namespace, name: metadata.name });
      }
      remaining += listObjects(this.#client, ref, { namespace }).length;
    }
    return remaining;
  }
}

/** What a provisioner notes on the objects that hold its lock: they outlive every process, and only the leader writes them. */
import { ConflictError, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { KubeObject, ObjectReference } from '../kube/kube-object.ts';
import { lockKinds, type LockName } from '../kube/election/lock-kind.ts';

export interface LockNotesOptions {
  client: KubeClient;
  /** The kinds of objects that are held. */
  held: readonly LockName[];
  namespace: string;
  name: string;
}

/** Attempts to write a note while the election renews the lock. */
const maxTries = 10;

/** Annotations of the objects that hold a lock: what is to outlive the process. */
export class LockNotes {
  readonly #options: LockNotesOptions;

  constructor(options: LockNotesOptions) {
    this.#options = options;
  }

  /** What an operator annotates, such as `leases/NAME -n NAMESPACE`; the Lease, if there are several objects. */
  get object(): string {
    const { namespace, name } = this.#options;
    return `${lockKinds[this.#shown].resource.plural}/${name} -n ${namespace}`;
  }

  /**
   * What the annotation says, on each of the objects that has it.
   *
   * @throws {ApiError} and {TransportError} when it cannot be read.
   */
  async read(key: string, signal: AbortSignal): Promise<string[]> {
    const found = new Set<string>();
    for (const kind of this.#options.held) {
      const value = (await this.#get(kind, signal))?.metadata.annotations?.[key] ?? '';
      if (value !== '') found.add(value);
    }
    return [...found];
  }

  /**
   * Sets the annotation on all of the objects; may be repeated.
   *
   * @throws {ApiError} and {TransportError} when it cannot be written.
   */
  async write(key: string, value: string, signal: AbortSignal): Promise<void> {
    for (const kind of this.#options.held) await this.#writeTo(kind, { key, value }, signal);
  }

  /**
   * The object that `object` names, for events about it.
   *
   * @throws as `read`.
   */
  async reference(signal: AbortSignal): Promise<ObjectReference | undefined> {
    const kind = this.#shown;
    const { group, version, kind: name } = lockKinds[kind].resource;
    const lock = await this.#get(kind, signal);
    const apiVersion = group === '' ? version : `${group}/${version}`;
    return lock && { apiVersion, kind: name, ...this.#name, uid: lock.metadata.uid ?? '' };
  }

  async #writeTo(kind: LockName, { key, value }: { key: string; value: string }, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const lock = await this.#get(kind, signal);
      if (lock === undefined || lock.metadata.annotations?.[key] === value) return; // it was deleted: nobody leads any more
      const metadata = { ...lock.metadata, annotations: { ...lock.metadata.annotations, [key]: value } };
      try {
        await this.#options.client.update(lockKinds[kind].resource, { ...lock, metadata }, { signal });
        return;
      } catch (error) {
        if (!(error instanceof ConflictError) || tries >= maxTries) throw error;
      }
    }
  }

  get #shown(): LockName {
    return this.#options.held.includes('endpoints') && this.#options.held.length === 1 ? 'endpoints' : 'lease';
  }

  get #name(): { namespace: string; name: string } {
    const { namespace, name } = this.#options;
    return { namespace, name };
  }

  async #get(kind: LockName, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#options.client.get<KubeObject>(lockKinds[kind].resource, this.#name, { signal });
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }
}

import {
  type KubeClient,
  type KubeObject,
  NotFoundError,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type Resource,
} from '../index.ts';
import { eventually } from './eventually.ts';

/** What a claim is to be; every field has a default. */
export interface ClaimSketch {
  /** Default: one of its own. */
  name?: string;
  /** Default `default`. It must exist. */
  namespace?: string;
  /** Default: none is named, so that the cluster's default class is taken. */
  storageClassName?: string;
  /** What it requests. Default `1Mi`. */
  storage?: string;
  annotations?: Record<string, string>;
  labels?: Record<string, string>;
  /** Further fields of its spec, which replace those above. Default `accessModes: ['ReadWriteOnce']`. */
  spec?: Partial<PersistentVolumeClaim['spec']>;
}

interface RecordedEvent extends KubeObject {
  involvedObject: { uid?: string };
  type?: string;
  reason?: string;
  message?: string;
}

const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
let serial = 0;

/** A PersistentVolumeClaim of a sandbox, which can be waited for. */
export class TestClaim {
  readonly name: string;
  readonly namespace: string;
  readonly #client: KubeClient;
  readonly #patienceMs: number;
  readonly #made: Promise<PersistentVolumeClaim>;

  /** @internal */
  constructor(
    sketch: ClaimSketch,
    { client, patienceMs, isNew }: { client: KubeClient; patienceMs: number; isNew: boolean },
  ) {
    this.name = sketch.name ?? `claim-${++serial}`;
    this.namespace = sketch.namespace ?? 'default';
    this.#client = client;
    this.#patienceMs = patienceMs;
    this.#made = isNew ? client.create(persistentVolumeClaims, this.#object(sketch)) : this.#read();
    this.#made.catch(() => undefined); // whoever awaits a method of it gets to know
  }

  /** As it was when it was created. @throws {ApiError} when it was refused. */
  async created(): Promise<PersistentVolumeClaim> {
    return await this.#made;
  }

  /** As it is now; undefined when it is gone, or when another one has its name. */
  async current(): Promise<PersistentVolumeClaim | undefined> {
    const { metadata } = await this.#made;
    const claim = await orUndefined(this.#read());
    return claim?.metadata.uid === metadata.uid ? claim : undefined;
  }

  /**
   * Waits until it is Bound.
   *
   * @returns its volume.
   * @throws when it is not in time, with its events: they say why.
   */
  async bound(options: { withinMs?: number; signal?: AbortSignal } = {}): Promise<PersistentVolume> {
    const { withinMs = this.#patienceMs, signal } = options;
    const check = async (): Promise<PersistentVolume> => {
      const claim = await this.current();
      const phase = claim?.status?.phase ?? (claim === undefined ? 'gone' : 'Pending');
      if (phase !== 'Bound') throw new Error(`the claim ${this.#key} is ${phase}, not Bound`);
      return await this.#client.get<PersistentVolume>(persistentVolumes, { name: claim?.spec.volumeName ?? '' });
    };
    return await this.#withEvents(() => eventually(check, { withinMs, signal }));
  }

  /**
   * Waits for a warning, such as one that says why there is no volume.
   *
   * @param reason - of the event. Default `ProvisioningFailed`.
   * @returns its message.
   */
  async warned(reason = 'ProvisioningFailed'): Promise<string> {
    const check = async (): Promise<string> => {
      const found = (await this.#events()).find((event) => event.type === 'Warning' && event.reason === reason);
      if (found === undefined) throw new Error(`the claim ${this.#key} has no event ${reason}`);
      return found.message ?? '';
    };
    return await this.#withEvents(() => eventually(check, { withinMs: this.#patienceMs }));
  }

  /** Deletes it; its volume goes later. Nothing happens when it is gone. */
  async delete(): Promise<void> {
    const { metadata } = await this.#made;
    if ((await this.current()) === undefined) return;
    await orUndefined(this.#client.delete(persistentVolumeClaims, metadata));
  }

  /** Waits until it is gone. @throws when it is not in time. */
  async gone(options: { withinMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    const { withinMs = this.#patienceMs, signal } = options;
    const check = async (): Promise<void> => {
      if ((await this.current()) !== undefined) throw new Error(`the claim ${this.#key} is still there`);
    };
    await this.#withEvents(() => eventually(check, { withinMs, signal }));
  }

  /** Its events so far, as `Type Reason: message`. */
  async events(): Promise<string[]> {
    return (await this.#events()).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  }

  get #key(): string {
    return `${this.namespace}/${this.name}`;
  }

  #object({ storageClassName, storage = '1Mi', annotations, labels, spec }: ClaimSketch): PersistentVolumeClaim {
    return {
      metadata: {
        name: this.name,
        namespace: this.namespace,
        ...(annotations && { annotations }),
        ...(labels && { labels }),
      },
      spec: {
        ...(storageClassName !== undefined && { storageClassName }),
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage } },
        ...spec,
      },
    };
  }

  async #read(): Promise<PersistentVolumeClaim> {
    const { name, namespace } = this;
    return await this.#client.get<PersistentVolumeClaim>(persistentVolumeClaims, { name, namespace });
  }

  async #events(): Promise<RecordedEvent[]> {
    const { metadata } = await this.#made;
    const all = await this.#client.list<RecordedEvent>(events, { namespace: this.namespace });
    return all.filter(({ involvedObject }) => involvedObject.uid === metadata.uid);
  }

  /** A claim that was refused is not waited for. */
  async #withEvents<T>(wait: () => Promise<T>): Promise<T> {
    await this.#made;
    try {
      return await wait();
    } catch (error) {
      const said = await this.events().catch(() => []);
      const list =
        said.length === 0 ? 'It has no events' : `Its events:\n${said.map((line) => `  ${line}`).join('\n')}`;
      throw new Error(`${error instanceof Error ? error.message : String(error)}. ${list}`, { cause: error });
    }
  }
}

/** Undefined where there is no such object. */
export async function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

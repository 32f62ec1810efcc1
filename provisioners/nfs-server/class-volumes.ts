import { type KubeClient, type PersistentVolume, persistentVolumes } from '../../src/index.ts';
import { classOfOwn } from './volume-object.ts';

/** How many volumes of each class exist here: what was made by this process, and what was saved before it. */
export class ClassVolumes {
  readonly #client: Pick<KubeClient, 'list'>;
  readonly #identity: string;
  readonly #classes = new Map<string, string>();
  readonly #deleted = new Set<string>();
  #loading: Promise<void> | undefined;

  constructor({ client, identity }: { client: Pick<KubeClient, 'list'>; identity: string }) {
    this.#client = client;
    this.#identity = identity;
  }

  /** @throws when the volumes cannot be listed, which is tried again at the next call. */
  async count(className: string): Promise<number> {
    this.#loading ??= this.#load();
    try {
      await this.#loading;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
    return [...this.#classes.values()].filter((each) => each === className).length;
  }

  add(volumeName: string, className: string): void {
    this.#deleted.delete(volumeName);
    this.#classes.set(volumeName, className);
  }

  remove(volumeName: string): void {
    if (this.#loading === undefined) this.#deleted.add(volumeName); // the list may still have it
    this.#classes.delete(volumeName);
  }

  async #load(): Promise<void> {
    for (const volume of await this.#client.list<PersistentVolume>(persistentVolumes)) {
      const className = classOfOwn(volume, this.#identity);
      const { name } = volume.metadata;
      if (className !== undefined && !this.#deleted.has(name)) this.#classes.set(name, className);
    }
  }
}

import type { Lister, PersistentVolume } from '../../src/index.ts';

/** How many volumes of each class exist here: what was made by this process, and what was saved before it. */
export class ClassVolumes {
  readonly #volumes: Pick<Lister<PersistentVolume>, 'list'>;
  readonly #isExported: (volumeName: string) => boolean;
  readonly #classes = new Map<string, string>();
  #isLoaded = false;

  /**
   * @param options.volumes - the controller's cache: complete before the first claim is served, and late afterwards.
   * @param options.isExported - whether a volume of that name has its data here.
   */
  constructor(options: {
    volumes: Pick<Lister<PersistentVolume>, 'list'>;
    isExported: (volumeName: string) => boolean;
  }) {
    this.#volumes = options.volumes;
    this.#isExported = options.isExported;
  }

  count(className: string): number {
    if (!this.#isLoaded) this.#load();
    let count = 0;
    for (const each of this.#classes.values()) if (each === className) count++;
    return count;
  }

  add(volumeName: string, className: string): void {
    this.#classes.set(volumeName, className);
  }

  /** The export is gone already. */
  remove(volumeName: string): void {
    this.#classes.delete(volumeName);
  }

  /** The cache may still show volumes that are deleted, which have no export any more. */
  #load(): void {
    this.#isLoaded = true;
    for (const { metadata, spec } of this.#volumes.list()) {
      const { storageClassName = '' } = spec;
      if (storageClassName !== '' && this.#isExported(metadata.name))
        this.#classes.set(metadata.name, storageClassName);
    }
  }
}

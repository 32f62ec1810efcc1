/** Which other volumes lie in a directory, so that no volume takes another along when it is deleted. */
import type { Clock, Lister, PersistentVolume } from '../../src/index.ts';
import { ownVolumes } from './own-volumes.ts';
import { relation, type VolumePath } from './volume-path.ts';

/** The cache of volumes shows a volume that was saved this much later at the latest, in milliseconds. */
const maxCacheLagMs = 60_000;

export interface NeighboursOptions {
  volumes: Lister<PersistentVolume>;
  provisionerName: string;
  sharePath: string;
  clock: Clock;
  /** A volume that could not be deleted because of another one, which is gone now. */
  onFreed: (volumeName: string) => void;
}

/** The nearest other volume. */
export interface Neighbour {
  name: string;
  lies: 'same' | 'inside';
  path: VolumePath;
}

interface Made {
  path: VolumePath;
  claimUid: string;
  /** When the claim was settled: the volume is in the cache soon, or never will be. */
  settledAtMs?: number;
}

export class Neighbours {
  readonly #options: NeighboursOptions;
  /** Directories that this process made for volumes which the cache may not show yet, by volume. */
  readonly #made = new Map<string, Made>();
  /** Volumes whose directory is gone, or left to another volume: their objects go next. */
  readonly #done = new Set<string>();
  /** Volumes that wait for others. */
  readonly #blocked = new Set<string>();

  constructor(options: NeighboursOptions) {
    this.#options = options;
  }

  /** A directory is made for a volume, which is about to be saved. */
  making(name: string, made: { path: VolumePath; claimUid: string }): void {
    this.#sweep();
    this.#done.delete(name);
    this.#made.set(name, made);
  }

  /** No volume will be saved for the claim any more, or it has been. */
  settled(claimUid: string): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const made of this.#made.values()) if (made.claimUid === claimUid) made.settledAtMs ??= nowMs;
  }

  /** The volume has no directory any more, or leaves it to another one. */
  done(name: string): void {
    this.#sweep();
    this.#made.delete(name);
    this.#done.add(name);
    const blocked = [...this.#blocked];
    this.#blocked.clear();
    for (const each of blocked) this.#options.onFreed(each);
  }

  /** The volume waits for others that lie inside. */
  blocked(name: string): void {
    this.#blocked.add(name);
  }

  /** Another volume inside the directory, else one that has the very same. Those that lie above do not count. */
  find(name: string, path: VolumePath): Neighbour | undefined {
    this.#sweep();
    let same: Neighbour | undefined;
    for (const other of this.#others()) {
      if (other.name === name || this.#done.has(other.name)) continue;
      const lies = relation(path, other.path);
      if (lies === 'inside') return { ...other, lies };
      if (lies === 'same') same ??= { ...other, lies };
    }
    return same;
  }

  *#others(): Iterable<{ name: string; path: VolumePath }> {
    yield* ownVolumes(this.#options);
    for (const [name, { path }] of this.#made) yield { name, path };
  }

  #sweep(): void {
    const { volumes, clock } = this.#options;
    const isLong = ({ settledAtMs = Infinity }: Made): boolean => clock.monotonicMs() - settledAtMs > maxCacheLagMs;
    for (const [name, made] of this.#made) {
      if (volumes.get(name) !== undefined || isLong(made)) this.#made.delete(name);
    }
    for (const name of this.#done) if (volumes.get(name) === undefined) this.#done.delete(name);
  }
}

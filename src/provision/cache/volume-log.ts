/**
 * What happened to PersistentVolumes since the oldest open record, by name and by storage. A cache shows only what is there now:
 * a volume that was created, retained and removed has left no trace in it.
 */
import type { CacheTrail, ChangeType } from '../../kube/cache/reflector-cache.ts';
import { type KubeObject, orderOf } from '../../kube/kube-object.ts';
import type { PersistentVolume } from '../objects.ts';

/** What was seen of the PersistentVolumes of one name. */
export interface SeenVolume {
  /** UIDs of the claims that they were for. */
  readonly claimUids: ReadonlySet<string>;
  /** Keys of their storage, as `Provisioner.storageKeys`. */
  readonly storageKeys: ReadonlySet<string>;
  /** As of the last event. */
  readonly policy: string;
  readonly phase: string;
}

/** Whether a PersistentVolume has had a name or a storage since some resource version. */
type Verdict =
  /** None has, up to `VolumeLog.reached`. */
  | { kind: 'never' }
  | { kind: 'seen'; volume: SeenVolume }
  /** A part of what happened is still to be read. */
  | { kind: 'pending' }
  /** A part of what happened is lost. */
  | { kind: 'unknown'; why: string };

/** Versions between which nothing is known: after `from`, up to `until`. */
export interface Hole {
  readonly from: number;
  readonly until: number;
  /** Why it will never be known; undefined: it is to be read. */
  readonly lost: string | undefined;
}

/** What is asked about the past: by the intents. */
export interface VolumeLogUser {
  /** Since which versions it will be asked for names. */
  neededVersions(): readonly number[];
  /** The same for storage. */
  neededStorageVersions(): readonly number[];
  /** The server has gone back to an older state: nothing that was known before can be compared with what comes. */
  lostHistory(): void;
}

const missed = 'an event about the PersistentVolumes could not be read';
/** What is no longer needed is dropped once so much more is kept than was needed the last time. */
const minPruned = 1000;

interface Entry extends SeenVolume {
  version: number;
  claimUids: Set<string>;
  storageKeys: Set<string>;
}

export class VolumeLog implements CacheTrail {
  readonly #storageKeys: (volume: PersistentVolume) => readonly string[];
  readonly #names = new Map<string, Entry>();
  /** The last event in which a volume had a storage, by its key. */
  readonly #storage = new Map<string, number>();
  #holes: Hole[] = [];
  /** The version from which on events are known, but for holes; of earlier ones only those that were read later. */
  #start: number | undefined;
  #reached = NaN;
  #isBlind = false;
  #prunedSize = 0;
  #user: VolumeLogUser | undefined;
  #reader: { fill(): void } | undefined;

  /** @param options.storageKeys - as of `Provisioner`; whatever it throws counts as no key. */
  constructor({ storageKeys }: { storageKeys: (volume: PersistentVolume) => readonly string[] }) {
    this.#storageKeys = storageKeys;
  }

  /** Sets who asks about the past. Default: nobody does. */
  usedBy(user: VolumeLogUser): void {
    this.#user = user;
  }

  /** Sets who reads holes. Default: they stay. */
  readBy(reader: { fill(): void }): void {
    this.#reader = reader;
  }

  /** Since which versions it will be asked for names. */
  get neededVersions(): readonly number[] {
    return this.#user?.neededVersions() ?? [];
  }

  /** Everything up to this version is known, but for holes; NaN: nothing is, or the server's versions are no numbers. */
  get reached(): number {
    return this.#reached;
  }

  /** The holes that are to be read. */
  get pending(): Hole[] {
    return this.#holes.filter(({ lost }) => lost === undefined);
  }

  /**
   * Whether a volume has had the name.
   *
   * @param since - after this version; NaN: none is known.
   */
  verdict(name: string, since: number): Verdict {
    const entry = this.#names.get(name);
    if (entry !== undefined && isAfter(entry.version, since)) return { kind: 'seen', volume: entry };
    if (Number.isNaN(since)) return { kind: 'unknown', why: 'it is not known since when it could have had one' };
    const holes = this.#holes.filter(({ until }) => until > since);
    const why = holes.find(({ lost }) => lost !== undefined)?.lost;
    if (why !== undefined) return { kind: 'unknown', why };
    const isCovered = this.#start !== undefined && this.#start <= since && since <= this.#reached;
    return holes.length === 0 && isCovered ? { kind: 'never' } : { kind: 'pending' };
  }

  /** Whether a volume, of whatever name, was seen to have storage of this key after this version. */
  sawStorage(key: string, since: number): boolean {
    const version = this.#storage.get(key);
    return version !== undefined && isAfter(version, since);
  }

  /** Somebody asks about what was before this log began, or was dropped since: that is to be read. */
  extend(since: number): void {
    if (this.#start === undefined || !(since < this.#start)) return;
    this.#holes.push({ from: since, until: this.#start, lost: undefined });
    this.#start = since;
    this.#reader?.fill();
  }

  /** What happened from one version to another was read. */
  close(from: number, until: number): void {
    this.#cut(from, until, () => undefined);
    if (from <= this.#reached && until > this.#reached) this.#reached = until;
  }

  /** What happened from one version to another will never be known. */
  lose(from: number, until: number, why: string): void {
    this.#cut(from, until, (range) => ({ ...range, lost: why }));
  }

  /** Notes an event, whoever has read it. */
  note(volume: PersistentVolume): void {
    const { metadata, spec, status } = volume;
    const version = orderOf(metadata.resourceVersion);
    const keys = this.#keysOf(volume);
    const known = this.#names.get(metadata.name);
    const entry: Entry = known ?? { policy: '', phase: '', version, claimUids: new Set(), storageKeys: new Set() };
    if (known === undefined) this.#names.set(metadata.name, entry);
    const uid = spec.claimRef?.uid ?? '';
    if (uid !== '') entry.claimUids.add(uid);
    for (const key of keys) {
      entry.storageKeys.add(key);
      this.#storage.set(key, later(this.#storage.get(key), version));
    }
    if (known === undefined || !(version < entry.version)) {
      Object.assign(entry, {
        version: later(entry.version, version),
        policy: spec.persistentVolumeReclaimPolicy ?? '',
        phase: status?.phase ?? '',
      });
    }
  }

  changed(_type: ChangeType, object: KubeObject): void {
    this.note(object as PersistentVolume);
  }

  listed(resourceVersion: string, { rewound }: { rewound: boolean }): void {
    const version = orderOf(resourceVersion);
    if (this.#start === undefined || rewound) {
      this.#restart(version);
      if (rewound) this.#user?.lostHistory();
      return;
    }
    if (!(version > this.#reached)) return;
    this.#holes.push({ from: this.#reached, until: version, lost: undefined });
    this.#reached = version;
    this.#reader?.fill();
  }

  missed(): void {
    this.#isBlind = true;
  }

  advanced(resourceVersion: string): void {
    const version = orderOf(resourceVersion);
    if (this.#isBlind) this.#holes.push({ from: this.#reached, until: version, lost: missed });
    this.#isBlind = false;
    if (isAfter(version, this.#reached)) this.#reached = version;
    this.#prune();
  }

  #restart(version: number): void {
    this.#names.clear();
    this.#storage.clear();
    this.#holes = [];
    this.#start = this.#reached = version;
  }

  /** Replaces a range in all holes by what `replaced` returns for its part of each. */
  #cut(from: number, until: number, replaced: (inside: Hole) => Hole | undefined): void {
    this.#holes = this.#holes.flatMap((hole) => {
      const inside = { ...hole, from: Math.max(hole.from, from), until: Math.min(hole.until, until) };
      if (!(inside.from < inside.until)) return [hole];
      const parts = [{ ...hole, until: inside.from }, replaced(inside), { ...hole, from: inside.until }];
      return parts.filter((part) => part !== undefined && part.from < part.until) as Hole[];
    });
  }

  #keysOf(volume: PersistentVolume): readonly string[] {
    try {
      return this.#storageKeys(volume);
    } catch {
      return [];
    }
  }

  #prune(): void {
    if (this.#names.size < 2 * this.#prunedSize + minPruned) return;
    const oldest = minOf(this.neededVersions) ?? this.#reached;
    const oldestStorage = minOf(this.#user?.neededStorageVersions() ?? []) ?? this.#reached;
    for (const [name, { version }] of this.#names) if (version <= oldest) this.#names.delete(name);
    for (const [key, version] of this.#storage) if (version <= oldestStorage) this.#storage.delete(key);
    this.#holes = this.#holes.filter(({ until }) => until > oldest);
    if (this.#start !== undefined && oldest > this.#start) this.#start = oldest;
    this.#prunedSize = this.#names.size;
  }
}

/** Also where the order is not known. */
function isAfter(version: number, since: number): boolean {
  return !(version <= since);
}

function later(a: number | undefined, b: number): number {
  return a === undefined || isAfter(b, a) ? b : a;
}

function minOf(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : numbers.reduce((min, each) => Math.min(min, each));
}

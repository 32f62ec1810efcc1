import type { StoredRecord } from '../provision/intent-journal/read-journal.ts';

/** A record, and the storage that was found for it. */
export interface IndexedRecord extends StoredRecord {
  /** Ids that the driver has, and no PersistentVolume. Of a record with a handle at most that one. */
  readonly listedIds: string[];
  /** Ids of other such storage, which may be the record's. */
  readonly candidateIds: string[];
}

/** Characters that Kubernetes allows in no object's name: drivers join the parts of their ids with them. */
const separators = /[^A-Za-z0-9._-]+/;

/**
 * Which records name which storage: by the handle or, where that is not known, by the volume's name, which many drivers use
 * as the id, or as a part of it.
 */
export class RecordIndex {
  readonly all: readonly IndexedRecord[];
  readonly #byHandle: ReadonlyMap<string, IndexedRecord[]>;
  readonly #byName: ReadonlyMap<string, IndexedRecord[]>;

  constructor(records: readonly StoredRecord[]) {
    this.all = records.map((each) => ({ ...each, listedIds: [], candidateIds: [] }));
    this.#byHandle = Map.groupBy(this.all, ({ record }) => record.handle ?? '');
    this.#byName = Map.groupBy(this.#byHandle.get('') ?? [], ({ record }) => record.volume.name);
  }

  /** The records that name the storage by its id. */
  withHandle(id: string): readonly IndexedRecord[] {
    return (id === '' ? undefined : this.#byHandle.get(id)) ?? [];
  }

  /** The records that name the storage. */
  naming(id: string): readonly IndexedRecord[] {
    const known = this.withHandle(id);
    if (known.length > 0 || this.#byName.size === 0) return known;
    const parts = new Set([id, ...id.split(separators)]);
    return [...parts].flatMap((part) => this.#byName.get(part) ?? []);
  }
}

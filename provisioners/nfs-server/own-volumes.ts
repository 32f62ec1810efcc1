/** The PersistentVolumes whose data is on this server, as the API server has them: what they name is to be exported. */
import {
  type KubeObject,
  type Logger,
  type PersistentVolume,
  persistentVolumes,
  type Transport,
} from '../../src/index.ts';
import { Informer, Tombstone } from '../../src/kube.ts';
import { exportIdOf } from './recorded-export.ts';
import { projectIdOf } from './recorded-quota.ts';
import type { VolumeDirectories } from './volume-directory.ts';
import { identityOf } from './volume-object.ts';

export interface OwnVolumesOptions {
  transport: Transport;
  /** What the annotation `Provisioner_Id` of the volumes is. The name of the provisioner does not count, as it may be changed. */
  identity: string;
  directories: Pick<VolumeDirectories, 'isVolume'>;
  /** The volume is new, or what it names has changed. */
  onChange: (name: string) => void;
  logger: Logger;
}

const readAnnotations = ['Provisioner_Id', 'Export_Id', 'EXPORT_block', 'Project_Id'] as const;

/**
 * Follows all PersistentVolumes, and keeps those of this provisioner, and those of another identity that may have been of this
 * provisioner; of others only the name.
 */
export class OwnVolumes {
  readonly #options: OwnVolumesOptions;
  readonly #informer: Informer<PersistentVolume>;
  readonly #own = new Map<string, PersistentVolume>();
  /** Those of another identity with a path that a volume has here. Their data may be here, or on the disk of another provisioner. */
  readonly #others = new Map<string, PersistentVolume>();
  /** Names of others whose data is here: their ids are not given to new volumes. */
  readonly #reserved = new Set<string>();
  /** The number of volumes that name each id. */
  readonly #exportIds = new Map<number, number>();
  readonly #projectIds = new Map<number, number>();

  constructor(options: OwnVolumesOptions) {
    this.#options = options;
    const { transport, identity, directories, logger } = options;
    this.#informer = new Informer({
      transport,
      resource: persistentVolumes,
      transform: (object) => reduced(object as PersistentVolume, { identity, directories }),
      sameContent: (old, volume) => contentOf(old) === contentOf(volume),
      logger,
    });
    this.#informer.addHandler({
      onAdd: (volume) => this.#set(volume),
      onUpdate: (_old, volume) => this.#set(volume),
      onDelete: (gone) => this.#delete(gone instanceof Tombstone ? gone.key : gone.metadata.name),
    });
  }

  /** Follows the API server until the signal aborts; resolves then. To be called once. */
  run(stop: AbortSignal): Promise<void> {
    return this.#informer.run(stop);
  }

  /** Resolves once all are known. */
  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  get(name: string): PersistentVolume | undefined {
    return this.#own.get(name);
  }

  get names(): Iterable<string> {
    return this.#own.keys();
  }

  /** A volume of another identity, with a path that a volume has here. */
  other(name: string): PersistentVolume | undefined {
    return this.#others.get(name);
  }

  get otherNames(): Iterable<string> {
    return this.#others.keys();
  }

  /** The data of the other volume is here: its ids are given to no new volume while it exists. Safe to repeat. */
  reserveIds(name: string): void {
    const other = this.#others.get(name);
    if (other === undefined || this.#reserved.has(name)) return;
    this.#reserved.add(name);
    this.#count(other, 1);
  }

  /** Whether a volume names the export id. */
  hasId(id: number): boolean {
    return this.#exportIds.has(id);
  }

  /** Whether a volume names the project id. */
  hasProjectId(id: number): boolean {
    return this.#projectIds.has(id);
  }

  #set(volume: PersistentVolume): void {
    const { identity, onChange } = this.#options;
    const { name } = volume.metadata;
    const wasReserved = this.#reserved.has(name);
    this.#delete(name);
    if (identityOf(volume) === identity) {
      this.#own.set(name, volume);
      this.#count(volume, 1);
    } else if (volume.spec.nfs !== undefined) {
      this.#others.set(name, volume);
      if (wasReserved) this.reserveIds(name);
    } else return;
    onChange(name);
  }

  #delete(name: string): void {
    const own = this.#own.get(name);
    const known = own ?? this.#others.get(name);
    if (known === undefined) return;
    if (own !== undefined || this.#reserved.has(name)) this.#count(known, -1);
    this.#own.delete(name);
    this.#others.delete(name);
    this.#reserved.delete(name);
    this.#options.onChange(name);
  }

  #count({ metadata: { annotations = {} } }: PersistentVolume, change: 1 | -1): void {
    count(this.#exportIds, exportIdOf(annotations), change);
    count(this.#projectIds, projectIdOf(annotations), change);
  }
}

function count(counts: Map<number, number>, id: number | undefined, change: 1 | -1): void {
  if (id === undefined) return;
  const number = (counts.get(id) ?? 0) + change;
  if (number > 0) counts.set(id, number);
  else counts.delete(id);
}

function reduced(
  volume: PersistentVolume,
  { identity, directories }: Pick<OwnVolumesOptions, 'identity' | 'directories'>,
): PersistentVolume {
  const { metadata, spec, status } = volume;
  const { name, uid, resourceVersion } = metadata;
  const kept: KubeObject['metadata'] = {
    name,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
  const owner = identityOf(volume);
  const isOther = owner !== undefined && directories.isVolume(spec.nfs?.path ?? '');
  if (owner !== identity && !isOther) return { metadata: kept, spec: {} };
  const given = metadata.annotations ?? {};
  const keys = readAnnotations.filter((key) => Object.hasOwn(given, key));
  const annotations = Object.fromEntries(keys.map((key) => [key, given[key] ?? '']));
  return {
    metadata: { ...kept, annotations },
    spec: { ...(spec.nfs && { nfs: spec.nfs }), ...(spec.capacity && { capacity: spec.capacity }) },
    status: { phase: status?.phase ?? '' },
  };
}

function contentOf({ metadata: { uid, annotations }, spec: { nfs, capacity }, status }: PersistentVolume): string {
  return JSON.stringify([uid, annotations, nfs?.path, capacity, status?.phase]);
}

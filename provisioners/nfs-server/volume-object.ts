/** The PersistentVolume of a volume: the annotations have what its deletion needs. */
import { gidAnnotation, IgnoredError, type PersistentVolume } from '../../src/index.ts';
import { mountsOf } from '../shared-nfs/mounted-paths.ts';
import type { ExportEntry } from './ganesha-config.ts';
import type { Project } from './project-quota.ts';
import type { VolumePlan } from './volume-plan.ts';

/** The annotation that names the provisioner which has the data. */
const identityKey = 'Provisioner_Id';

/**
 * Describes a volume; what is missing here, such as capacity and access modes, the controller takes from claim and class.
 *
 * @param made.project - its quota; undefined: none.
 */
export function volumeObject(
  { volumeName, identity, mountOptions, gid }: VolumePlan,
  made: { server: string; entry: ExportEntry; project: Project | undefined },
): PersistentVolume {
  const { server, entry, project } = made;
  return {
    metadata: {
      name: volumeName,
      annotations: {
        'kubernetes.io/createdby': 'nfs-dynamic-provisioner',
        EXPORT_block: entry.text,
        Export_Id: String(entry.id),
        Project_block: project?.block ?? '',
        Project_Id: String(project?.id ?? 0),
        [identityKey]: identity,
        ...(mountOptions !== '' && { 'volume.beta.kubernetes.io/mount-options': mountOptions }),
        ...(gid !== undefined && { [gidAnnotation]: String(gid) }),
      },
    },
    spec: { nfs: { server, path: entry.path, readOnly: false } },
  };
}

/** The provisioner that has the data of a volume; undefined where the volume does not say. */
export function identityOf({ metadata }: PersistentVolume): string | undefined {
  return metadata.annotations?.[identityKey];
}

/** The paths on NFS servers that Pods with the volume may mount. */
export function mountedPaths(volume: PersistentVolume): string[] {
  const mounts = mountsOf(volume);
  return mounts.kind === 'paths' ? mounts.paths.map(({ path }) => path) : [];
}

/** Handle and attributes of a volume whose driver is not known, as text: names of directories may be anywhere in it. */
export function driverText(volume: PersistentVolume): string {
  const mounts = mountsOf(volume);
  return mounts.kind === 'driver' ? [mounts.terms.handle, ...mounts.terms.values.values()].flat().join('\n') : '';
}

/**
 * Whether we have the data of a volume.
 *
 * @throws {IgnoredError} when another provisioner of the same name has it; {Error} when the volume does not say.
 */
export function requireOwn(volume: PersistentVolume, identity: string): void {
  const { metadata } = volume;
  const owner = identityOf(volume);
  if (owner === undefined) {
    throw new Error(
      `error determining if this provisioner was the one to provision volume ${JSON.stringify(metadata.name)}: ` +
        `PV doesn't have an annotation ${identityKey}`,
    );
  }
  if (owner === identity) return;
  throw new IgnoredError(
    `this provisioner id ${identity} didn't provision volume ${JSON.stringify(metadata.name)} and so can't delete it; ` +
      `id ${owner} did & can`,
  );
}

/** @throws when an annotation is missing that every volume of this provisioner has. */
export function requireAnnotations({ metadata }: PersistentVolume, keys: readonly string[]): void {
  const missing = keys.find((key) => metadata.annotations?.[key] === undefined);
  if (missing !== undefined) throw new Error(`PV doesn't have an annotation with key ${missing}`);
}

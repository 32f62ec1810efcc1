/** The export that a PersistentVolume names: what is needed to restore it when the server's file has lost it. */
import type { PersistentVolume } from '../../src/index.ts';
import { isVolumeId, type LostExport } from './exports-file.ts';
import type { Squash } from './ganesha-config.ts';
import type { VolumeDirectories } from './volume-directory.ts';

/** An export, or why the volume names none that may be restored. */
export type RecordedExport = LostExport | { readonly problem: string };

/** In a block of ganesha, and in a line of /etc/exports. */
const squashes: Readonly<Record<string, Squash>> = {
  no_root_squash: 'no_root_squash',
  root_id_squash: 'root_id_squash',
  root_squash: 'root_id_squash',
};

/**
 * Reads the export of a volume. The permission to write PersistentVolumes must not be a way to configure a server that runs as root: the
 * path has to be that of a volume, directly below the export directory, and of the block only the value of `Squash` is taken,
 * which has to be one of two.
 */
export function recordedExport(
  { metadata: { annotations = {} }, spec: { nfs } }: PersistentVolume,
  directories: Pick<VolumeDirectories, 'isVolume' | 'root'>,
): RecordedExport {
  const id = exportIdOf(annotations);
  if (id === undefined) {
    return problem('Export_Id', annotations, 'must be a number from 1 to 65535 other than 152');
  }
  const squash = squashIn(annotations['EXPORT_block'] ?? '');
  if (squash === undefined) {
    return problem(
      'EXPORT_block',
      annotations,
      'must contain "Squash = no_root_squash;" or "Squash = root_id_squash;"',
    );
  }
  const path = nfs?.path ?? '';
  if (directories.isVolume(path)) return { id, path, squash };
  return {
    problem: `spec.nfs.path ${JSON.stringify(path)} is not a directory pvc-... directly below ${directories.root}`,
  };
}

/** The export id that a volume names; undefined if no volume can have it. */
export function exportIdOf(annotations: Readonly<Record<string, string>>): number | undefined {
  const text = annotations['Export_Id'] ?? '';
  return /^[1-9]\d{0,4}$/.test(text) && isVolumeId(Number(text)) ? Number(text) : undefined;
}

/** The only value that the text has. */
function squashIn(block: string): Squash | undefined {
  const inBlock = [...block.matchAll(/\bSquash\s*=\s*([^;\s]*)\s*;/gi)].map(([, value = '']) => value.toLowerCase());
  const inLine = [...block.matchAll(/[(,](no_root_squash|root_squash)(?=[,)])/g)].map(([, value = '']) => value);
  const found = new Set(
    [...inBlock, ...inLine].map((value) => (Object.hasOwn(squashes, value) ? squashes[value] : undefined)),
  );
  const [squash] = found;
  return found.size === 1 ? squash : undefined;
}

function problem(key: string, annotations: Readonly<Record<string, string>>, rule: string): RecordedExport {
  const given = Object.hasOwn(annotations, key) ? JSON.stringify(annotations[key]?.slice(0, 200)) : 'missing';
  return { problem: `annotation ${key} ${given}: it ${rule}` };
}

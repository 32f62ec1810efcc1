/** Which paths of NFS servers a PersistentVolume of any kind names. What is not understood is for the callers to decide. */
import path from 'node:path';
import type { PersistentVolume } from '../../src/index.ts';

/** The driver of the Kubernetes project for directories of NFS exports. Drivers of other names with the same attributes are treated alike. */
const nfsDriver = 'nfs.csi.k8s.io';

/** What a PersistentVolume hands to its CSI or FlexVolume driver. */
export interface DriverTerms {
  readonly driver: string;
  /** Empty for a FlexVolume. */
  readonly handle: string;
  /** The attributes, by their keys in lower case: of several spellings of one key each counts, as csi-driver-nfs takes any of them. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

export type Mounts =
  /** Mounts these paths of NFS servers; each is absolute and clean. */
  | { kind: 'paths'; paths: readonly MountedPath[] }
  /** A directory of a node, which may be the NFS server itself. */
  | { kind: 'node'; path: string }
  /** Of a driver whose attributes are not known. */
  | { kind: 'driver'; terms: DriverTerms }
  /** Certainly no directory of an NFS server. */
  | { kind: 'none' };

export interface MountedPath {
  readonly server: string;
  readonly path: string;
  /** The volume is a directory below the path, whose name is not known. */
  readonly isOpen: boolean;
}

/** What the volume mounts. */
export function mountsOf(volume: PersistentVolume): Mounts {
  const { nfs, csi, flexVolume, hostPath, local } = volume.spec;
  if (nfs !== undefined) return { kind: 'paths', paths: [mounted(nfs.server, nfs.path)] };
  if (csi !== undefined) return ofDriver(volume, termsOf(csi.driver, csi.volumeHandle, csi.volumeAttributes));
  if (flexVolume !== undefined) return ofDriver(volume, termsOf(flexVolume.driver, '', flexVolume.options));
  const node = hostPath ?? local;
  return node === undefined ? { kind: 'none' } : { kind: 'node', path: path.posix.resolve('/', node.path) };
}

function mounted(server: string, text: string, isOpen = false): MountedPath {
  return { server, path: path.posix.resolve('/', text), isOpen };
}

function termsOf(driver: string, handle = '', attributes: Record<string, string> = {}): DriverTerms {
  const values = Map.groupBy(Object.entries(attributes), ([key]) => key.toLowerCase());
  return { driver, handle, values: new Map([...values].map(([key, found]) => [key, found.map(([, value]) => value)])) };
}

function ofDriver(volume: PersistentVolume, terms: DriverTerms): Mounts {
  const { driver, handle, values } = terms;
  const shares = (values.get('share') ?? []).filter((share) => share !== '');
  const [server = ''] = values.get('server') ?? [];
  const subdirs = values.get('subdir') ?? [''];
  const paths = shares.flatMap((share) =>
    subdirs.flatMap((subdir) => joined(volume, terms, { server, share, subdir })),
  );
  if (shares.length === 0 && driver !== nfsDriver) return { kind: 'driver', terms };
  const ofHandle = pathInHandle(handle);
  if (ofHandle !== undefined) paths.push(ofHandle);
  return paths.length === 0 ? { kind: 'driver', terms } : { kind: 'paths', paths };
}

/** `SERVER#SHARE#SUBDIR`, with up to two parts more, or `SERVER/SHARE/SUBDIR` of old versions: what csi-driver-nfs deletes. */
function pathInHandle(handle: string): MountedPath | undefined {
  const parts = handle.split('#');
  const [server = '', share = '', subdir = ''] =
    parts.length >= 3 ? parts : (/^([^/]+)\/(.*)\/([^/]+)$/.exec(handle)?.slice(1) ?? []);
  return server === '' ? undefined : mounted(server, `${share}/${subdir}`);
}

const templates = {
  '${pvc.metadata.name}': 'csi.storage.k8s.io/pvc/name',
  '${pvc.metadata.namespace}': 'csi.storage.k8s.io/pvc/namespace',
  '${pv.metadata.name}': 'csi.storage.k8s.io/pv/name',
} as const;

/** Share and directory, with the templates that csi-driver-nfs replaces when a volume is mounted. */
function joined(
  { metadata, spec }: PersistentVolume,
  { values }: DriverTerms,
  { server, share, subdir }: { server: string; share: string; subdir: string },
): MountedPath[] {
  const expanded = (value: (template: keyof typeof templates) => string | undefined): string =>
    (Object.keys(templates) as (keyof typeof templates)[]).reduce(
      (text, template) => text.replaceAll(template, () => value(template) ?? template),
      subdir,
    );
  const literal = expanded((template) => values.get(templates[template])?.[0]);
  if (!literal.includes('${')) return [mounted(server, `${share}/${literal}`)];
  const byClaim = expanded(
    (template) =>
      ({
        '${pvc.metadata.name}': spec.claimRef?.name,
        '${pvc.metadata.namespace}': spec.claimRef?.namespace,
        '${pv.metadata.name}': metadata.name,
      })[template],
  );
  const isOpen = byClaim.includes('${');
  const known = isOpen ? byClaim.slice(0, byClaim.indexOf('${')).replace(/[^/]*$/, '') : byClaim;
  return [mounted(server, `${share}/${literal}`), mounted(server, `${share}/${known}`, isOpen)];
}

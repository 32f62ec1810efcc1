/** Which directories of the export a PersistentVolume uses, of whatever kind and provisioner. What is not understood is in use. */
import { isIPv6 } from 'node:net';
import path from 'node:path';
import type { PersistentVolume } from '../../src/index.ts';
import { type DriverTerms, type MountedPath, mountsOf } from '../shared-nfs/mounted-paths.ts';
import { isMadeBy } from './own-volumes.ts';
import type { Settings } from './settings.ts';
import { type VolumePath, withParents } from './volume-path.ts';

/** Annotation of a PersistentVolume of others: the directory that it uses, such as `/team/x` from the root of the export, or `none`. */
export const directoryKey = 'nfs-subdir-external-provisioner/directory';

export type Export = Pick<Settings, 'server' | 'sharePath' | 'provisionerName'>;

export interface DirectoryUse {
  /** Mounted, or possibly so, with all that is in them. */
  readonly directories: readonly VolumePath[];
  /** Named by a driver that is not known: such a directory may be used, or one in it. */
  readonly mentioned: readonly VolumePath[];
  /** Any directory may be used. */
  readonly isUnclear: boolean;
}

const nothing: DirectoryUse = { directories: [], mentioned: [], isUnclear: false };

/**
 * What a volume uses. The name of its server does not count: one server has several names and addresses, and different
 * ones prove nothing. The export itself and what is above it does not count, since charts make a volume of it for their own mount.
 */
export function useOf(volume: PersistentVolume, export_: Export): DirectoryUse {
  const { provisionerName, sharePath } = export_;
  const isOurs = isMadeBy(volume, provisionerName);
  const stated = isOurs ? undefined : statedUse(volume);
  if (stated !== undefined) return stated;
  const mounts = mountsOf(volume);
  if (mounts.kind === 'none') return nothing;
  if (mounts.kind === 'driver') return usedByDriver(volume, mounts.terms, export_);
  const share = names(sharePath);
  if (mounts.kind === 'node') {
    const isOnServer = share.length > 0 && beginsWith(names(mounts.path), share);
    return isOnServer ? using([names(mounts.path).slice(share.length)]) : nothing;
  }
  const readings = mounts.paths.flatMap((each) => readingsOf(each, share, isOurs));
  const isUnclear = readings.some(({ directory, isOpen }) => isOpen && directory.length === 0);
  return { ...using(readings.map(({ directory }) => directory)), isUnclear };
}

function using(directories: readonly VolumePath[]): DirectoryUse {
  return { ...nothing, directories: directories.filter((each) => each.length > 0) };
}

/** The use that an administrator has stated by the annotation; undefined where it is absent or not understood. */
function statedUse({ metadata }: PersistentVolume): DirectoryUse | undefined {
  const text = metadata.annotations?.[directoryKey];
  if (text === 'none') return nothing;
  return text?.startsWith('/') === true && names(text).length > 0 ? using([names(text)]) : undefined;
}

function names(text: string): string[] {
  return path.posix.resolve('/', text).split('/').filter(Boolean);
}

/** Some shares ignore case, and some the composition of letters. */
function beginsWith(longer: VolumePath, start: VolumePath): boolean {
  return start.every((name, index) => folded(longer[index] ?? '') === folded(name));
}

function folded(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/**
 * The directories of the export that a mounted path may be. NFSv4 shows exports below a pseudo-root, so the same directory has several
 * paths with different beginnings: a path that does not begin with that of the export may be shorter or longer than it at the front.
 */
function readingsOf(
  mounted: MountedPath,
  share: VolumePath,
  isOurs: boolean,
): { directory: VolumePath; isOpen: boolean }[] {
  const { isOpen } = mounted;
  const parts = names(mounted.path);
  const isLiteral = beginsWith(parts, share) && (share.length > 0 || isOurs);
  if (isLiteral) return [{ directory: parts.slice(share.length), isOpen }];
  if (isOurs || share.length === 0) return endsOf(parts).map((directory) => ({ directory, isOpen }));
  const shorter = endsOf(share).slice(1);
  const found = [...shorter, []].filter((end) => beginsWith(parts, end)).map((end) => parts.slice(end.length));
  for (const end of endsOf(parts)) if (beginsWith(end, share)) found.push(end.slice(share.length));
  return found.map((directory) => ({ directory, isOpen }));
}

/** The path, then the path without its first name, without its first two, and so on. */
function endsOf(parts: VolumePath): VolumePath[] {
  return parts.map((_name, index) => parts.slice(index));
}

/** Keys of Kubernetes itself say nothing of the storage. */
const ownKeys = /(^|\.)(storage\.kubernetes\.io|storage\.k8s\.io)\//;
const serverKeys = /server|host|addr|endpoint|\bip\b/;
/** A text of more names is not searched for paths, which would need much time and memory: it may contain any. */
const maxNames = 100;
const smbSource = /^(\/\/|\\\\)[^/\\]/;
const blockWords = /\b(iscsi|iqn|nvme|nqn|fc)\b/i;
/** The name of a PersistentVolume that was made for a claim: nothing else has it by chance. */
const uniqueName = /pvc-[0-9a-f]{8}-[0-9a-f]{4}-/;

function usedByDriver({ spec }: PersistentVolume, { handle, values }: DriverTerms, export_: Export): DirectoryUse {
  const share = names(export_.sharePath);
  const entries = [...values]
    .filter(([key]) => !ownKeys.test(key))
    .flatMap(([key, all]) => all.map((text) => [key, text]));
  const isServerIn = ([key = '', text = '']: string[]): boolean => {
    const byKey = serverKeys.test(key);
    if (!byKey && !/[.:]/.test(export_.server) && !/[/\\:]/.test(text)) return false; // such as `nfs`, which is also a protocol
    return wordsIn(text).some((word) => isSameServer(word, export_.server, { byShortName: byKey }));
  };
  const mentionsServer = wordsIn(handle).some((word) => isSameServer(word, export_.server)) || entries.some(isServerIn);
  const texts = [handle, ...entries.map(([, text = '']) => text)].filter((text) => /[/\\#]/.test(text));
  const split = texts.flatMap(namesIn);
  const ends = split.filter(({ length }) => length <= maxNames).flatMap(endsOf);
  const isTooLong = split.some((all) => all.length > maxNames && (mentionsServer || contains(all, share)));
  const inShare =
    share.length === 0 ? [] : ends.filter((end) => beginsWith(end, share)).map((end) => end.slice(share.length));
  const subdirs = (values.get('subdir') ?? []).filter((subdir) => !subdir.includes('${')).map(names);
  const directories = [...inShare, ...(inShare.length === 0 ? [] : subdirs)].filter(({ length }) => length > 0);
  const isOnServer = entries.some(([key = '']) => serverKeys.test(key));
  const namesExport =
    inShare.some(({ length }) => length === 0) &&
    !texts.some((text) => smbSource.test(text)) && // an SMB share, which is named in full
    (mentionsServer || share.length > 1 || texts.some((text) => isMountOf(text, share, isOnServer)));
  const isKnown = mentionsServer || namesExport;
  const mentioned = ends.filter(([first = '']) => isKnown || uniqueName.test(first));
  const isBlock = spec.volumeMode === 'Block' || blockWords.test([handle, ...entries.flat()].join(' '));
  return {
    directories,
    mentioned,
    isUnclear:
      isTooLong || (namesExport && directories.length === 0) || (mentionsServer && !isBlock && texts.length === 0),
  };
}

function contains(all: VolumePath, share: VolumePath): boolean {
  return share.length > 0 && all.some((_name, index) => beginsWith(all.slice(index, index + share.length), share));
}

/** The names in a text, in each way in which a path may be written in it. */
function namesIn(text: string): string[][] {
  const plain = decoded(text);
  const bare = [...new Set([text, plain, plain.replaceAll(/["'()[\]{}<>|]/g, ' ')])];
  const all = bare.flatMap((each) => {
    const words = each.split(/[/\\:#,;=?&\s]+/);
    return /[:#,;=?&\s]/.test(each) ? [words, each.split('/')] : [words];
  });
  const named = all.map((each) => each.filter((name) => name !== '' && name !== '.'));
  const climbing = named.filter((each) => each.includes('..'));
  return [...named, ...climbing.map((each) => path.posix.normalize(each.join('/')).split('/'))];
}

function decoded(text: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}

/**
 * Whether the text names the export itself, so that the volume is a directory in it that is not named. Many exports have one short name,
 * such as `/data`, which disks, pools and other shares have, too: another path that ends in such a name does not count.
 *
 * @param isOnServer - another text names a server.
 */
function isMountOf(text: string, share: VolumePath, isOnServer: boolean): boolean {
  const place = text.replace(/^(\w+:\/\/[^/]*|[^/]*:(?=\/))/, '');
  const isMount = place.startsWith('/') && (place !== text || isOnServer);
  return isMount && names(place).length === share.length && beginsWith(names(place), share);
}

function wordsIn(text: string): string[] {
  return text.split(/[/\\#,;=?&\s@"'()]+/).filter(Boolean);
}

/** Whether two texts certainly name the same server; the first may have a port, or end in a colon. */
function isSameServer(word: string, server: string, { byShortName = false } = {}): boolean {
  const [name, ours] = [hostOf(word), hostOf(server)];
  if (name === ours) return name !== '';
  const isAddress = [name, ours].some((host) => isIPv6(host) || /^[\d.]+$/.test(host));
  return byShortName && !isAddress && (name.startsWith(`${ours}.`) || ours.startsWith(`${name}.`)) && name !== '';
}

function hostOf(text: string): string {
  const lower = text.toLowerCase();
  const bare = isIPv6(lower) ? lower : (/^\[(.*?)\]/.exec(lower)?.[1] ?? lower.replace(/:\d*$/, '')).replace(/\.$/, '');
  if (!isIPv6(bare)) return bare;
  const { hostname } = new URL(`http://[${bare.replace(/%.*/, '')}]`);
  const mapped = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(hostname);
  if (mapped === null) return hostname.slice(1, -1);
  const [high = 0, low = 0] = mapped.slice(1).map((hex) => Number.parseInt(hex, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** The key of volumes that may use any directory of the export. No path of a volume begins with two slashes. */
const unclearKey = '//';

/** The key of volumes that have the directory, or one in it. */
function keyOf(directory: VolumePath): string {
  return insideKey(directory.join('/'));
}

/** `keyOf` a directory given as text. */
export function insideKey(directory: string): string {
  return folded(directory);
}

/** The key of volumes that have exactly this directory. No path of a volume begins with a slash. */
function exactKey(directory: VolumePath): string {
  return `/${keyOf(directory)}`;
}

/** The keys under which a volume is indexed. */
export function storageKeysOf(volume: PersistentVolume, export_: Export): string[] {
  const { directories, mentioned, isUnclear } = useOf(volume, export_);
  const keys = [
    ...[...directories, ...mentioned].flatMap((each) => withParents(each).map(keyOf)),
    ...directories.map(exactKey),
    ...(isUnclear ? [unclearKey] : []),
  ];
  return [...new Set(keys)];
}

/** The keys under which the volumes are found that use the directory, one in it or one above it, or that may use any. */
export function keysOfHolders(directory: VolumePath): string[] {
  return [keyOf(directory), ...withParents(directory.slice(0, -1)).map(exactKey), unclearKey];
}

/** How a volume uses a directory, and what to do about it, as parts of an error message. */
export function describedUse(volume: PersistentVolume, export_: Export): { uses: string; cure: string } {
  const { name } = volume.metadata;
  const mounts = mountsOf(volume);
  const [first] = mounts.kind === 'paths' ? mounts.paths : [];
  const ours = isMadeBy(volume, export_.provisionerName);
  const place =
    mounts.kind === 'node' ? `${mounts.path} of a node` : first && `${first.server || 'an NFS server'}:${first.path}`;
  const uses =
    place === undefined
      ? `may use this directory, which its handle and attributes (driver ${driverOf(volume)}) do not rule out`
      : `uses ${place}`;
  const cure = ours
    ? `Correct or delete ${name}`
    : `If ${name} uses another directory: kubectl annotate persistentvolume ${name} ${directoryKey}=none (or =/DIRECTORY from the root of the export)`;
  return { uses: uses.replace(/\p{Cc}/gu, '?'), cure };
}

function driverOf({ spec }: PersistentVolume): string {
  return spec.csi?.driver ?? spec.flexVolume?.driver ?? '';
}

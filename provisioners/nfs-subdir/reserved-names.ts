/** Names in the export that are no volume's. */
import { isArchiveDirectory } from './class-parameters.ts';
import { isReservedName } from './share-identity.ts';

/** What file servers keep in the folders that they export, in lower case: snapshots, recycle bins, and what they have found. */
const serverNames = new Set([
  ...['lost+found', '.snapshot', '.snapshots', '~snapshot', '#snapshot', '.snap', '.zfs', '.ckpt', '.glusterfs'],
  ...['#recycle', '@recycle', '$recycle.bin', '@eadir', '@tmp', '@recently-snapshot', 'system volume information'],
]);

/** Whether the file server has made it: it is neither a volume's nor anybody's to remove. */
export function isOfFileServer(name: string): boolean {
  return serverNames.has(name.toLowerCase());
}

/** Why no volume may have the path; undefined: it may. */
export function reservedReason(path: readonly string[]): string | undefined {
  const [first = ''] = path;
  if (isReservedName(first)) return `${JSON.stringify(first)} is reserved for the identity of the share`;
  if (isArchiveDirectory(first)) return `${JSON.stringify(first)} is reserved for archives`;
  const name = path.find(isOfFileServer);
  return name === undefined ? undefined : `${JSON.stringify(name)} is reserved for the file server itself`;
}

import { createHash } from 'node:crypto';
import { isSubdomainName } from '../kube/object-name.ts';
import { sanitised } from './lease-name.ts';

/** Room for `-journal-` and a number behind the lock's name, in the 253 characters of an object's name. */
const maxLockLength = 236;

/**
 * Name of the lock that the intent journal belongs to: its objects are `LOCK-journal-N`. It is the name of the election's
 * Lease; in node deployment, where each node has a journal of its own, followed by a dot, which no Lease's name has, and
 * the name of the node. If that is no valid object name, it is shortened and ends in a hash.
 */
export function journalLock(lease: string, nodeName?: string): string {
  const name = nodeName === undefined ? lease : `${lease}.${nodeName}`;
  return isObjectName(name) ? name : hashed(name);
}

/**
 * The node whose journal an object belongs to, by the object's name. Undefined for other objects, and where the name was
 * shortened.
 *
 * @param lease - as of `journalLock`.
 */
export function journalNode(lease: string, objectName: string): string | undefined {
  const lock = /^(.*)-journal-[0-9]+$/.exec(objectName)?.[1] ?? '';
  const isWhole = lock.startsWith(`${lease}.`) && lock.length < maxLockLength;
  return isWhole ? lock.slice(lease.length + 1) : undefined;
}

/** With room for what follows. */
function isObjectName(name: string): boolean {
  return name.length <= maxLockLength && isSubdomainName(name);
}

/** A name in lower case without dots, the same for the same text, and another one for another text. */
function hashed(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
  const readable = sanitised(text).toLowerCase().replace(/^-+/, '');
  return `${readable.slice(0, maxLockLength - hash.length - 1)}-${hash}`.replace(/^-/, '');
}

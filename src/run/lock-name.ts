import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from '../base/logger.ts';
import { isSubdomainName } from '../kube/kube-object.ts';

/** Every character outside letters, digits and dashes becomes a dash; a last dash gets an `X`. */
export function sanitised(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '-X');
}

/**
 * Name of the Lease: the driver's, sanitised. Where that is no valid object name (upper case, which the API refuses) it
 * is lower-cased, with one warning.
 */
export function leaseName(driverName: string, logger: Logger): string {
  const name = sanitised(driverName);
  const valid = name.toLowerCase();
  if (valid !== name) {
    logger.warn(
      { driver: driverName, lease: valid },
      'The driver name gives no valid Lease name, a lower-case one is used',
    );
  }
  return valid;
}

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

const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The pod's own namespace, else `default`. @param file - where a pod finds it. */
export function ownNamespace(file = namespaceFile): string {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return text === '' ? 'default' : text;
  } catch {
    return 'default'; // not in a pod
  }
}

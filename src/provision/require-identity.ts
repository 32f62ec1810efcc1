import type { PersistentVolume } from './objects.ts';
import { IgnoredError } from './provisioner.ts';

/**
 * Lets `delete` go on only where this instance created the storage: for provisioners of which several serve one name, each with
 * storage of its own. `provision` puts the identity on the volume; it must survive a restart.
 *
 * @param key - the annotation of the volume that names the instance which created it.
 * @throws {IgnoredError} when it names another instance, which has to delete the volume; no event is recorded.
 * @throws {Error} when the volume has no such annotation: it is not known whose it is.
 */
export function requireIdentity(volume: PersistentVolume, key: string, identity: string): void {
  const found = volume.metadata.annotations?.[key];
  if (found === undefined) throw new Error('identity annotation not found on PV');
  if (found !== identity) throw new IgnoredError('identity annotation on PV does not match ours');
}

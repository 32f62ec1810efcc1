/** Checks for programs in JavaScript, whose mistakes no type checker finds. */
import type { Provisioner } from './provisioner.ts';
import { missingOf, type Recoverable } from './recoverable.ts';

/** @throws {TypeError} when it is not a text, or empty. */
export function checkProvisionerName(name: unknown): void {
  if (typeof name === 'string' && name !== '') return;
  throw new TypeError(
    `provisionerName must be the provisioner of your StorageClasses, such as "hostpath.example.com", got ${JSON.stringify(name)}`,
  );
}

/** @throws {TypeError} naming what is missing: a `Recoverable` provisioner needs no `provision`. */
export function checkProvisioner(provisioner: Partial<Provisioner & Recoverable> = {}): void {
  const missing = missingOf(provisioner);
  if (typeof provisioner.provision !== 'function' && missing.length > 0) {
    throw new TypeError(
      `provisioner must have a method provision, or implement Recoverable, of which it lacks ${missing.join(', ')}`,
    );
  }
  if (typeof provisioner.delete !== 'function') throw new TypeError('provisioner must have a method delete');
}

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

/**
 * @throws {TypeError} naming what is missing: a `Recoverable` provisioner needs no `provision`. One that has some of the methods
 * which only a `Recoverable` has needs them all: else a misspelt one would silently end the protection from crashes.
 */
export function checkProvisioner(provisioner: Partial<Provisioner & Recoverable<object>> = {}): void {
  const missing = missingOf(provisioner);
  const some = recoverableOnly.filter((method) => provisioner[method] !== undefined);
  if (missing.length > 0 && some.length > 0) {
    throw new TypeError(
      `provisioner has ${some.join(', ')} of the methods of Recoverable, and lacks ${missing.join(', ')}: \
its attempts would not be recorded. Implement all of them, or none`,
    );
  }
  if (typeof provisioner.provision !== 'function' && missing.length > 0) {
    throw new TypeError(
      `provisioner must have a method provision, or implement Recoverable, of which it lacks ${missing.join(', ')}`,
    );
  }
  if (typeof provisioner.delete !== 'function') throw new TypeError('provisioner must have a method delete');
}

/** What a provisioner that is not `Recoverable` has no use for. */
const recoverableOnly = ['plan', 'fulfil', 'revoke', 'handleKey'] as const;

/** Checks for programs in JavaScript, whose mistakes no type checker finds. */
import type { Provisioner } from './provisioner.ts';
import { missingOf, type Recoverable } from './recoverable.ts';

/** @throws {TypeError} when it is not a string, or is empty. */
export function checkProvisionerName(name: unknown): void {
  if (typeof name === 'string' && name !== '') return;
  throw new TypeError(
    `provisionerName must be a non-empty string, the field provisioner of your StorageClasses, such as "hostpath.example.com", got ${JSON.stringify(name)}`,
  );
}

/**
 * @throws {TypeError} naming what is missing: a `Recoverable` provisioner needs no `provision`. One that has `plan`, `fulfil`, `revoke`
 * or `handleKey` needs all methods of `Recoverable`: else a misspelt one would silently end the protection from crashes.
 */
export function checkProvisioner(given: Partial<Provisioner & Recoverable<object>> | null = {}): void {
  const provisioner = given ?? {};
  const missing = missingOf(provisioner);
  const some = recoverableOnly.filter((method) => provisioner[method] !== undefined);
  if (missing.length > 0 && some.length > 0) {
    throw new TypeError(
      `provisioner has ${some.join(', ')}, but not ${missing.join(', ')}: it would not be Recoverable, \
and a crash could leave storage behind. Implement all of these, or none`,
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
